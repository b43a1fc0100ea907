import { expect, it } from "vitest";
import { inFlightMessage } from "../../../test/relay/scanned-message.ts";
import { memory } from "../../brokers/memory.ts";
import { sqlite } from "../../databases/sqlite/index.ts";
import { createEventEmitter } from "../../runtime/events.ts";
import { silentLogger } from "../../runtime/logger.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import type { RelayEvents } from "../events.ts";
import { relaySettings } from "../options.ts";
import { createHealth } from "../parking/health.ts";
import { createOutlets } from "../parking/outlets.ts";
import { createTopicBreaker } from "../parking/topic-breaker.ts";
import { createRelayFlow } from "./flow.ts";
import { createPublisher } from "./publisher.ts";

it("a probe that is given back unpublished does not keep its topic resting for ever", async () => {
  const clock = createManualClock();
  const broker = memory();
  const breaker = createTopicBreaker(clock);
  const settings = relaySettings({ database: sqlite({ file: ":memory:" }), broker, clock });
  const flow = createRelayFlow({
    settings,
    window: { size: 0 },
    // Less lease is left than a publish may take.
    keeper: { mayPublish: () => false },
    health: createHealth({
      settings,
      breaker,
      outlets: createOutlets({ broker, clock, windowSize: 2_000 }),
      events: createEventEmitter<RelayEvents>({ logger: silentLogger }),
      onTopicBack: () => {},
      onBrokerBack: () => {},
    }),
    publisher: createPublisher({ broker, clock, publishTimeoutMs: 10_000 }),
    settler: { submit: () => {}, waiting: 0, idle: () => Promise.resolve() },
    transactionOf: () => ({ database: {}, settled: new Map(), settle: () => Promise.resolve(new Map()) }),
  });
  breaker.report({
    topic: "orders",
    sent: 0,
    destination: 1,
    unknown: 0,
    retriable: 0,
    retryAfterMs: undefined,
    reason: "",
  });
  await clock.advance(1_000);
  breaker.taken("orders", 1);
  expect(breaker.allowance("orders")).toBe(0);
  flow.publish([inFlightMessage()]);
  await flow.idle();
  expect(breaker.allowance("orders")).toBe(1);
});
