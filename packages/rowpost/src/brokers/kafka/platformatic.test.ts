/**
 * Producers passed in that retry by themselves: the combined outcome of several tries at one
 * leader.
 */
import { describe, expect, test } from "vitest";
import type { BatchOutcome, PartitionBatch } from "./driver.ts";
import type { PlatformaticClient } from "./given-client.ts";
import { settingsFrom } from "./options.ts";
import { platformaticDriver } from "./platformatic.ts";

const batches: PartitionBatch[] = [0, 1].map((partition) => ({ partition, records: [] }));

/** Outcomes of a send that fails like this at each leader, in the package's error bundle. */
async function outcomesOf(...leaders: readonly object[]): Promise<BatchOutcome[]> {
  const bundle = Object.assign(several("Producing messages failed.", leaders), { produced: {} });
  const client = {
    metadata: async () => ({ topics: new Map() }),
    send: async () => {
      throw bundle;
    },
    connections: new Map(),
  } as unknown as PlatformaticClient;
  const session = await platformaticDriver(undefined, settingsFrom({ client })).open(new AbortController().signal);
  return await session.send(1, "orders", batches);
}

function several(message: string, errors: readonly object[]): Error {
  return Object.assign(new Error(message), { code: "PLT_KFK_MULTIPLE", errors });
}

const tries = (...errors: readonly object[]): Error => several(`produce failed ${errors.length} times.`, errors);
const closed = Object.assign(new Error("Connection closed"), { code: "PLT_KFK_NETWORK" });

/** An answer with a code for each partition; 0 means stored. */
function answer(codes: Readonly<Record<number, number>>): Error {
  const partitionResponses = Object.entries(codes).map(([index, errorCode]) => ({
    index: Number(index),
    errorCode,
    baseOffset: errorCode === 0 ? 70n : -1n,
  }));
  const errors = partitionResponses
    .filter(({ errorCode }) => errorCode !== 0)
    .map(({ errorCode }) => Object.assign(new Error("no"), { apiCode: errorCode, apiId: `CODE_${errorCode}` }));
  return Object.assign(several("Received response with error", errors), {
    response: { responses: [{ partitionResponses }] },
  });
}

const NOT_STORED = 19;
const TIMED_OUT = 7;

describe("several tries", () => {
  test("a refusal after a try that was lost proves nothing; what was stored is", async () => {
    expect(await outcomesOf(tries(closed, answer({ 0: NOT_STORED, 1: 0 })))).toMatchObject([
      { fault: { kind: "lost", code: "CONNECTION_CLOSED" } },
      { baseOffset: 70n },
    ]);
  });

  test("a refusal after an answer that leaves it open leaves it open; one after a receipt takes nothing back", async () => {
    expect(
      await outcomesOf(tries(answer({ 0: TIMED_OUT, 1: 0 }), answer({ 0: NOT_STORED, 1: NOT_STORED }))),
    ).toMatchObject([{ fault: { kind: "answer", code: TIMED_OUT } }, { baseOffset: 70n }]);
  });

  test("only refusals: the last one", async () => {
    expect(await outcomesOf(tries(answer({ 0: 56, 1: 56 }), answer({ 0: NOT_STORED, 1: 10 })))).toMatchObject([
      { fault: { kind: "answer", code: NOT_STORED } },
      { fault: { kind: "answer", code: 10 } },
    ]);
  });
});

test("what one leader answered stands, whatever became of the request to another", async () => {
  expect(await outcomesOf(closed, answer({ 1: 10 }))).toMatchObject([
    { fault: { kind: "lost" } },
    { fault: { kind: "answer", code: 10 } },
  ]);
});
