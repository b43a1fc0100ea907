/**
 * The server goes away and comes back: nothing is lost, and nothing uncertain is reported as
 * certain.
 */
import assert from "node:assert/strict";
import { until } from "../../contract-run.ts";
import type { BrokerContractCase } from "../case.ts";
import type { BrokerCaseContext } from "../context.ts";
import { describe, given } from "../context.ts";

export const outageCases: readonly BrokerContractCase[] = [
  {
    name: "while the server is away nothing is handed over, and all of it goes out when it is back",
    needs: ["faults"],
    timeoutMs: 30_000,
    async run(context) {
      const faults = given(context.harness.faults, "faults");
      await context.publishAll([context.message()]);
      await faults.refuse();
      await faults.cut();
      await outageNoticed(context);
      const batch = Array.from({ length: 10 }, () => context.message());
      const results = await context.publish(batch, { deadlineMs: 3_000 });
      for (const result of results) assertNotHandedOver(describe(result), result);
      assert.ok(
        results.some((result) => result.status === "failed"),
        "at least one says that the connection is the trouble",
      );
      await faults.accept();
      await context.publishUntilSent(batch);
      await context.arrivals(context.harness.topics.main, batch);
    },
  },
  {
    name: "a message whose connection breaks after it was handed over is unknown",
    needs: ["faults", "oneRequest"],
    async run(context) {
      const faults = given(context.harness.faults, "faults");
      await context.publishAll([context.message()]);
      // The request arrives and its answer is held back; then the connection is reset.
      faults.mute("toClient");
      const bodyBytes = 32_768;
      const before = faults.bytesToTarget();
      const message = context.message({ body: "h".repeat(bodyBytes), contentType: "text/plain" });
      const publishing = context.publish([message]);
      await until("the request is at the server", () => faults.bytesToTarget() - before >= bodyBytes);
      await faults.cut();
      faults.unmute();
      const [result] = await publishing;
      assert.ok(result?.status === "failed" && result.scope === "unknown", `it may be stored: ${describe(result)}`);
      await context.publishUntilSent([message]);
      await context.arrivals(context.harness.topics.main, [message]);
    },
  },
  {
    name: "a restart of the server loses nothing that was acknowledged, and the adapter finds its way back",
    needs: ["restart"],
    timeoutMs: 90_000,
    async run(context) {
      const restart = given(context.harness.restart, "restart");
      const before = Array.from({ length: 20 }, () => context.message());
      await context.publishAll(before);
      await restart();
      const after = Array.from({ length: 20 }, () => context.message());
      await context.publishUntilSent(after);
      await context.arrivals(context.harness.topics.main, [...before, ...after]);
    },
  },
];

/**
 * Publishes probes until the adapter notices the broken connection: writing into a dying one is
 * rightly `unknown`.
 */
async function outageNoticed(context: BrokerCaseContext): Promise<void> {
  await until(
    "the adapter notices that the server is away",
    async () => {
      const [result] = await context.publish([context.message()], { deadlineMs: 2_000 });
      assert.notEqual(result?.status, "sent", "sent although the server is away");
      return result?.status === "failed" && result.scope === "connection";
    },
    { withinMs: context.harness.recoverWithinMs ?? 10_000 },
  );
}

function assertNotHandedOver(text: string, result: { readonly status: string; readonly scope?: string }): void {
  const certain = result.status === "notStarted" || (result.status === "failed" && result.scope === "connection");
  assert.ok(certain, `certainly not handed over: ${text}`);
}
