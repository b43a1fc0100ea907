import { expect, it } from "vitest";
import { memory } from "../brokers/memory.ts";
import { createEventEmitter } from "../runtime/events.ts";
import { silentLogger } from "../runtime/logger.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { createOutlets } from "./outlets.ts";
import { createPublisher } from "./publisher.ts";
import type { RelayEvents } from "./relay-events.ts";
import { createRelayFlow } from "./relay-flow.ts";
import { relaySettings } from "./relay-options.ts";
import { createTopicBreaker } from "./topic-breaker.ts";

it("a probe that is given back unpublished does not keep its topic resting for ever", async () => {
  const clock = createManualClock();
  const broker = memory();
  const breaker = createTopicBreaker(clock);
  const settings = relaySettings({ database: undefined as never, broker, clock });
  const flow = createRelayFlow({
    ...{ breaker, settings, outlets: createOutlets({ ...settings, broker }), window: { size: 0 } },
    ...{ onTopicBack: () => {}, onBrokerBack: () => {} },
    // Less is left of the lease than a publish may take.
    keeper: { leftMs: () => 1 },
    publisher: createPublisher({ broker, clock, publishTimeoutMs: 10_000 }),
    settler: { submit: () => {}, waiting: 0, idle: () => Promise.resolve() },
    events: createEventEmitter<RelayEvents>({ logger: silentLogger }),
  });
  breaker.report({ topic: "orders", sent: 0, destination: 1, retriable: 0, retryAfterMs: undefined });
  await clock.advance(1_000);
  breaker.taken("orders", 1);
  expect(breaker.allowance("orders")).toBe(0);
  const message = {
    ...{ id: "1", shard: 0, type: "t", key: "1", topic: "orders", body: "{}", headers: null, contentType: null },
    ...{ orderingKey: null, retryCount: 0, deliveryCount: 0, lockVersion: 0, deliverAtMs: null, resend: false },
    ...{ waitingMs: 0, due: false },
  };
  const outgoing = {
    ...message,
    contentType: "",
    headers: {},
    orderingKey: undefined,
    deliverAtMs: undefined,
    attempt: 1,
  };
  flow.publish([{ entry: { epoch: 1, message }, outgoing }]);
  await flow.idle();
  expect(breaker.allowance("orders")).toBe(1);
});
