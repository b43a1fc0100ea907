/**
 * The contract suite is itself tested: stores that break one promise each, made of the real one,
 * must fail the cases that stand for it. A case that no broken store fails would prove nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openQueueBench } from "../contracts/queue-contract/bench.ts";
import { queueContract, queueSkipReason, runQueueCase } from "../contracts/queue-contract/contract.ts";
import type { QueueStoreHarness } from "../contracts/queue-contract/harness.ts";
import { describeWithService } from "../services.ts";
import { appendMutants } from "./contract-mutants/appends.ts";
import { handMutants } from "./contract-mutants/hands.ts";
import { lookMutants } from "./contract-mutants/looks.ts";
import { milestoneMutants } from "./contract-mutants/milestones.ts";
import { broken, type Mutation, needsServer } from "./contract-mutants/mutation.ts";
import { settleMutants } from "./contract-mutants/settles.ts";
import { serverHarness, sqliteHarness } from "./queue-harnesses.ts";

const mutants = [...appendMutants, ...settleMutants, ...handMutants, ...milestoneMutants, ...lookMutants];

function caseOf(beginning: string): (typeof queueContract)[number] {
  const [found, ...more] = queueContract.filter(({ name }) => name.startsWith(beginning));
  if (found === undefined || more.length > 0) throw new Error(`not one case begins with "${beginning}"`);
  return found;
}

/** SQLite has one lock for all, and one transaction at a time. */
function isForServer(mutation: Mutation, beginning: string): boolean {
  return needsServer(mutation) || caseOf(beginning).needs?.includes("rowLocks") === true;
}

interface Broken {
  readonly promise: string;
  readonly mutation: Mutation;
  readonly failing: readonly string[];
}

/** With those of the cases that this kind of database runs. */
function failingOn(server: boolean): readonly Broken[] {
  return mutants
    .map(([promise, mutation, ...failing]) => ({
      promise,
      mutation,
      failing: failing.filter((each) => isForServer(mutation, each) === server),
    }))
    .filter(({ failing }) => failing.length > 0);
}

function bindMutants(server: boolean, createHarness: () => Promise<QueueStoreHarness>): void {
  let harness: QueueStoreHarness | undefined;
  beforeAll(async () => {
    harness = await createHarness();
  });
  afterAll(() => harness?.close?.());

  test.each(failingOn(server))("$promise", { timeout: 40_000 }, async ({ mutation, failing }) => {
    if (harness === undefined) throw new Error("the harness was not made");
    const bench = await openQueueBench(broken(harness, mutation));
    try {
      for (const beginning of failing) {
        const contractCase = caseOf(beginning);
        expect(queueSkipReason(contractCase, bench)).toBeUndefined();
        const outcome = await runQueueCase(contractCase, bench).then(
          () => "it passes",
          (error: unknown) => error,
        );
        expect(outcome, beginning).toMatchObject({ name: "AssertionError" });
      }
    } finally {
      await bench.close();
    }
  });
}

describe("a broken store of the queue is found", () => {
  describe("on sqlite", () => bindMutants(false, () => sqliteHarness("file")));
  describeWithService("postgres", "beside others", ({ name }) => bindMutants(true, () => serverHarness(name)));

  test("every case has a broken store that fails it", () => {
    const covered = mutants.flatMap(([, , ...failing]) => failing);
    const uncovered = queueContract
      .map(({ name }) => name)
      .filter((name) => !covered.some((beginning) => name.startsWith(beginning)));
    expect(uncovered).toEqual([]);
  });
});
