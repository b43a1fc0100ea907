/** Every call settles in time and reports correctly what was handed over. */
import assert from "node:assert/strict";
import type { BrokerContractCase } from "../case.ts";
import { describe, given } from "../context.ts";

export const deadlineCases: readonly BrokerContractCase[] = [
  {
    name: "a call that is aborted before it starts hands nothing over",
    async run(context) {
      await context.publishAll([context.message()]);
      const batch = [context.message(), context.message({ orderingKey: `${context.keyPrefix}-k` }), context.message()];
      const results = await context.broker.publish(batch, { signal: AbortSignal.abort(new Error("aborted before")) });
      assert.deepEqual(
        results.map(({ status }) => status),
        ["notStarted", "notStarted", "notStarted"],
      );
      const marker = context.message();
      await context.publishAll([marker]);
      const received = await context.arrivals(context.harness.topics.main, [marker]);
      const keys = received.map(({ headers }) => headers["rowpost-key"]);
      for (const { key } of batch) assert.ok(!keys.includes(key), `${key} arrived although nothing was started`);
    },
  },
  {
    name: "when the server falls silent, what was handed over is unknown, within the deadline",
    needs: ["faults"],
    async run(context) {
      const faults = given(context.harness.faults, "faults");
      await context.publishAll([context.message()]);
      faults.mute();
      const orderingKey = `${context.keyPrefix}-k`;
      const topic = context.harness.topics.ordered ?? context.harness.topics.main;
      const batch = [
        context.message(),
        context.message(),
        context.message({ topic, orderingKey }),
        context.message({ topic, orderingKey }),
      ];
      const results = await context.publish(batch, { deadlineMs: 1_500 });
      for (const result of results) {
        const honest = result.status === "notStarted" || (result.status === "failed" && result.scope !== "message");
        assert.ok(honest, `not sent, and not the message's fault: ${describe(result)}`);
      }
      const [first] = results;
      assert.ok(
        first?.status === "failed" && first.scope === "unknown",
        `the first was handed over: ${describe(first)}`,
      );
      faults.unmute();
      await context.publishUntilSent([context.message()]);
    },
  },
  {
    name: "a call whose connection never comes about settles within its deadline",
    needs: ["faults"],
    async run(context) {
      const faults = given(context.harness.faults, "faults");
      // Silent from the first byte: the operating system accepts the connection, but no handshake
      // or request is answered.
      faults.mute();
      const results = await context.publish([context.message(), context.message()], { deadlineMs: 1_500 });
      for (const result of results) assert.notEqual(result.status, "sent");
      faults.unmute();
      await context.publishUntilSent([context.message()]);
    },
  },
];
