/** A message that cannot be sent fails alone, with the broker's reason. */
import assert from "node:assert/strict";
import type { BrokerContractCase } from "../case.ts";
import { assertMessageFailure, assertSent, describe, given, unsendable } from "../context.ts";
import { bodyLimit } from "../harness.ts";

export const failureCases: readonly BrokerContractCase[] = [
  {
    name: "results stand in the order of a mixed batch",
    needs: ["unsendable"],
    async run(context) {
      const bad = new Set([1, 4, 9]);
      const batch = Array.from({ length: 10 }, (_, index) => {
        const message = context.message();
        return bad.has(index) ? unsendable(context, message) : message;
      });
      const results = await context.publish(batch);
      for (const [index, result] of results.entries()) {
        if (bad.has(index)) assertMessageFailure(result, false);
        else assertSent(result);
      }
      const good = batch.filter((_message, index) => !bad.has(index));
      const received = await context.arrivals(context.harness.topics.main, good);
      assert.equal(received.length, good.length);
    },
  },
  {
    name: "a body above the limit fails alone",
    needs: ["bodyLimit"],
    timeoutMs: 40_000,
    async run(context) {
      const limit = given(bodyLimit(context.harness), "a limit of the body");
      // The limit counts bytes: half as many three-byte characters exceed it as well.
      const batch = [
        context.message(),
        context.message({ body: Buffer.alloc(limit + 1, "x"), contentType: "application/octet-stream" }),
        context.message({ body: "界".repeat(Math.ceil(limit / 2)), contentType: "text/plain" }),
        context.message(),
      ];
      const results = await context.publish(batch);
      assertSent(results[0]);
      assertMessageFailure(results[1], false);
      assertMessageFailure(results[2], false);
      assertSent(results[3]);
    },
  },
  {
    name: "an unknown topic fails its own messages, with a reason, and can be retried",
    needs: ["unknownTopic"],
    async run(context) {
      const { main, other } = context.harness.topics;
      const unknown = given(context.harness.topics.unknown, "topics.unknown");
      const batch = [main, unknown, other, unknown, main].map((topic) => context.message({ topic }));
      const results = await context.publish(batch);
      for (const index of [0, 2, 4]) assertSent(results[index]);
      for (const index of [1, 3]) {
        const result = results[index];
        assertMessageFailure(result, true);
        assert.ok(
          result?.status === "failed" && /topic/i.test(`${result.code} ${result.reason}`),
          `names the topic: ${describe(result)}`,
        );
      }
    },
  },
];
