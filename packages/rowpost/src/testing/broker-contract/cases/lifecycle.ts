import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { Broker } from "../../../brokers/broker.ts";
import { BrokerError } from "../../../runtime/errors.ts";
import { until } from "../../contract-run.ts";
import type { BrokerContractCase } from "../case.ts";
import type { BrokerCaseContext } from "../context.ts";
import { describe, GUARD_MS, given, guarded } from "../context.ts";

/** Twice the time a relay gives a broker. */
const CLOSE_GUARD_MS = 2_000;

export const lifecycleCases: readonly BrokerContractCase[] = [
  {
    name: "check resolves when the server can be used",
    async run({ broker }) {
      await broker.check();
    },
  },
  {
    name: "check rejects with advice when the server is away",
    needs: ["faults"],
    async run(context) {
      const faults = given(context.harness.faults, "faults");
      await faults.refuse();
      await faults.cut();
      await assertAdvice(context.broker);
    },
  },
  {
    name: "check rejects with advice when the credentials are wrong, and nothing is sent with them",
    needs: ["unauthorized"],
    async run(context) {
      const broker = await given(context.harness.createUnauthorized, "createUnauthorized")();
      try {
        await assertAdvice(broker);
        const [result] = await context.publish([context.message()], { broker });
        assert.equal(result?.status, "failed", describe(result));
      } finally {
        await broker.close();
      }
    },
  },
  {
    name: "close can be called twice, also at once, and before anything was published",
    async run(context) {
      const unused = await context.harness.createBroker();
      await unused.close();
      await unused.close();
      await context.publishAll([context.message()]);
      await Promise.all([context.broker.close(), context.broker.close()]);
      await context.broker.close();
    },
  },
  {
    name: "a publish after close sends nothing and says so",
    async run(context) {
      await context.publishAll([context.message()]);
      await context.broker.close();
      const late = context.message();
      const outcome = await context.publish([late]).catch((error: unknown) => error);
      if (outcome instanceof Error) {
        assert.ok("code" in outcome && !(outcome instanceof TypeError), `a typed error: ${String(outcome)}`);
      } else {
        const [result] = outcome as Awaited<ReturnType<Broker["publish"]>>;
        const said = result?.status === "notStarted" || (result?.status === "failed" && result.scope === "connection");
        assert.ok(said, `not handed over: ${describe(result)}`);
      }
    },
  },
  {
    name: "close ends the calls that are still running",
    needs: ["faults"],
    async run(context) {
      const faults = given(context.harness.faults, "faults");
      await context.publishAll([context.message()]);
      faults.mute();
      const publishing = context.publish([context.message(), context.message()], { deadlineMs: 2 * GUARD_MS });
      // Saying goodbye to a silent server may take a while, but the calls must not wait for it.
      const complaint = "close waited for calls that cannot end by themselves";
      const [results] = await guarded(Promise.all([publishing, context.broker.close()]), complaint);
      for (const result of results) assert.notEqual(result.status, "sent");
    },
  },
  {
    name: "close says goodbye for a moment only to a server that does not answer",
    needs: ["faults"],
    async run(context) {
      const faults = given(context.harness.faults, "faults");
      await context.publishAll([context.message()]);
      faults.mute();
      await guarded(context.broker.close(), "a relay that stops does not wait longer", CLOSE_GUARD_MS);
    },
  },
  {
    name: "close leaves no timer, socket or handle behind",
    timeoutMs: 40_000,
    async run(context) {
      // One use outside the count: clients keep process-wide resources (resolvers, thread pools)
      // from then on.
      await useOnce(context);
      await context.broker.close();
      await delay(50);
      const before = activeResources();
      for (let round = 0; round < 3; round += 1) await useOnce(context);
      let added: string[] = [];
      const settled = async (): Promise<boolean> => {
        added = addedResources(before, activeResources());
        return added.length === 0;
      };
      await until("handles", settled, { withinMs: GUARD_MS }).catch(() =>
        assert.deepEqual(added, [], "left behind after close"),
      );
    },
  },
];

async function assertAdvice(broker: Broker): Promise<void> {
  const error: unknown = await broker.check().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof BrokerError, `check rejects with a BrokerError: ${String(error)}`);
  assert.ok(error.message.length >= 20, `a message that says what to do: ${error.message}`);
}

async function useOnce(context: BrokerCaseContext): Promise<void> {
  const broker = await context.harness.createBroker();
  await context.publishAll([context.message(), context.message({ topic: context.harness.topics.other })], { broker });
  await broker.close();
}

/**
 * Active resources by kind. Called inside a promise, so that no timer of the measurement counts.
 */
function activeResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

function addedResources(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): string[] {
  const added: string[] = [];
  for (const [kind, count] of after) {
    const more = count - (before.get(kind) ?? 0);
    // Immediates come and go with every turn of the event loop.
    if (more > 0 && kind !== "Immediate") added.push(`${more} ${kind}`);
  }
  return added;
}
