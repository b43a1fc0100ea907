/** What a queue measures and tells of its messages, and whose traces its spans continue. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import {
  createQueue,
  type FailedEvent,
  type HandledEvent,
  type Queue,
  UnavailableError,
} from "../../src/queue/index.ts";
import { createMetricsRegistry, type MetricsRegistry } from "../../src/runtime/metrics-registry.ts";
import { activeTraceHeaders } from "../../src/runtime/trace-context.ts";
import { endedSpans, inSpan, installTelemetry, SPAN } from "../telemetry.ts";
import { until } from "../until.ts";
import { createMembers, gate, type Members, numbers } from "./members.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

const LABELS = { consumer: "billing", topic: "orders" } as const;
const SHORT_RETRY = { maxAttempts: 2, baseMs: 1, maxMs: 1 };
const BILLING = { topic: "orders", group: "billing", logger: "silent" } as const;

describeOnEach("what a queue measures and tells", (make) => {
  let opened: OpenQueue;
  let queue: Queue;
  let members: Members;
  let metrics: MetricsRegistry;
  let uninstall = (): void => undefined;

  beforeAll(() => {
    uninstall = installTelemetry();
  });
  afterAll(() => uninstall());
  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
    metrics = createMetricsRegistry();
    queue = createQueue({ database: opened.database, metrics });
    members = createMembers(queue);
    endedSpans.length = 0;
  });
  afterEach(async () => {
    await members.stopAll();
    await queue.close();
    await opened.close();
  });

  const counted = () => ({
    appended: metrics.value("rowpost_appended_total", { topic: "orders" }),
    handled: metrics.value("rowpost_handled_total", LABELS),
    took: metrics.value("rowpost_handle_duration_ms", LABELS),
    delayed: metrics.value("rowpost_handling_delay_ms", LABELS),
    failed: metrics.value("rowpost_handle_failures_total", { ...LABELS, scope: "message" }),
    away: metrics.value("rowpost_handle_failures_total", { ...LABELS, scope: "connection" }),
    redeliveries: metrics.value("rowpost_redeliveries_total", LABELS),
    dead: metrics.value("rowpost_dead_letters_total", LABELS),
  });

  it.each([
    ["parallel", {}],
    ["one at a time", { concurrency: 1, batchSize: 1 }],
    ["transactional", { transactional: true }],
  ] as const)("%s: each outcome once, when it is written, in a span of the append's trace", async (_how, how) => {
    const told: string[] = [];
    const inside: (string | undefined)[] = [];
    const written: Promise<void>[] = [];
    let isAway = true;
    const records = async ({ message: { key, id }, attempt }: HandledEvent, as: string): Promise<void> => {
      const { attempts = [] } = (await queue.message("orders", id ?? "")) ?? {};
      told.push(`${key} ${as} ${attempts.some((each) => each.attempt === attempt) ? "written" : "not written"}`);
    };
    const failed = (event: FailedEvent): void => {
      const { message } = event.error as Error;
      written.push(records(event, `${event.isLast ? "dead" : "failed"}: ${message}`));
    };
    await members.start({
      ...how,
      retry: SHORT_RETRY,
      on: { handled: (event) => void written.push(records(event, "handled")), failed },
      handler({ key, attempt }) {
        inside.push(activeTraceHeaders()?.["traceparent"]);
        if (key === "1" && isAway) {
          isAway = false;
          throw new UnavailableError("the bank is away");
        }
        if (key === "2" && attempt === 1) throw new TypeError("no stock");
        if (key === "3") throw new Error("never");
      },
    });
    await inSpan(SPAN, () => queue.append(numbers(4)));
    await until(() => counted().handled === 3 && counted().dead === 1);
    await Promise.all(written);
    expect(told.toSorted()).toEqual([
      "0 handled written",
      "1 handled written",
      "2 failed: no stock written",
      "2 handled written",
      "3 dead: never written",
      "3 failed: never written",
    ]);
    expect(counted()).toEqual({
      appended: 4,
      handled: 3,
      took: 6,
      delayed: 2,
      failed: 3,
      away: 1,
      redeliveries: 2,
      dead: 1,
    });
    // A transaction that is rolled back for one message calls the handlers of others again.
    expect(endedSpans.length).toBe(inside.length);
    for (const span of endedSpans)
      expect(span).toMatchObject({ name: "process orders", kind: 4, traceId: SPAN.traceId, parentId: SPAN.spanId });
    expect(inside).toEqual(expect.arrayContaining(endedSpans.map(({ spanId }) => `00-${SPAN.traceId}-${spanId}-01`)));
    const { attributes } = endedSpans.find(({ error }) => error === "no stock") ?? {};
    expect(attributes).toMatchObject({
      "messaging.system": "rowpost",
      "messaging.operation.type": "process",
      "messaging.destination.name": "orders",
      "messaging.destination.partition.id": "0",
      "messaging.consumer.group.name": "billing",
      "error.type": "TypeError",
    });
  });

  it("of a batch: each message by itself, in a span of its own trace", async () => {
    const consumer = await queue.consumeBatches({
      ...BILLING,
      retry: SHORT_RETRY,
      handler: (messages) => ({
        failed: messages
          .filter(({ key, attempt }) => key === "1" && attempt === 1)
          .map(({ id }) => ({ id, error: new TypeError("no stock") })),
      }),
    });
    await inSpan(SPAN, () => queue.append(numbers(3)));
    await until(() => counted().handled === 3);
    await consumer.stop();
    expect(counted()).toEqual({
      appended: 3,
      handled: 3,
      took: 4,
      delayed: 2,
      failed: 1,
      away: 0,
      redeliveries: 1,
      dead: 0,
    });
    expect(endedSpans.map(({ error }) => error ?? "").toSorted()).toEqual(["", "", "", "no stock"]);
    for (const span of endedSpans)
      expect(span).toMatchObject({ name: "process orders", traceId: SPAN.traceId, parentId: SPAN.spanId });
  });

  it("counts what is pulled and what is replayed, under the name of its group", async () => {
    const puller = await queue.pull({ ...BILLING, retry: SHORT_RETRY });
    await queue.append(numbers(2));
    for (let told = 0; told < 3; ) {
      for (const message of await puller.receive()) {
        told += 1;
        if (message.key === "1" && message.attempt === 1) await message.fail(new Error("not yet"));
        else await message.settle();
      }
    }
    await puller.stop();
    expect(counted()).toMatchObject({ handled: 2, failed: 1, redeliveries: 1, dead: 0 });
    const report = await queue.replay({ ...BILLING, from: "start", handler: () => undefined });
    expect(report.handled).toBe(2);
    expect(metrics.value("rowpost_handled_total", { ...LABELS, consumer: "billing@replay" })).toBe(2);
    expect(metrics.exposition()).toContain('rowpost_handled_total{consumer="billing",topic="orders"} 2');
  });

  it("counts a message behind a slow head once, and reports the head's age until it is done", async () => {
    const held = gate();
    const age = (): number => metrics.value("rowpost_oldest_unfinished_age_ms", LABELS);
    await members.start({ handler: async ({ key }) => (key === "0" ? await held.opened : undefined) });
    await queue.append(numbers(4));
    await until(() => counted().handled === 3 && age() > 1_000);
    held.open();
    await until(() => counted().handled === 4 && age() === 0);
    await members.stopAll();
    expect(counted()).toMatchObject({ handled: 4, took: 4 });
  });

  it("goes on when a listener or the metrics throw", async () => {
    const seen: string[] = [];
    const broken = createQueue({
      database: opened.database,
      metrics: { increment: refuse, gauge: refuse, observe: refuse },
    });
    const consumer = await broken.consume({
      ...BILLING,
      on: { handled: refuse },
      handler: ({ key = "" }) => void seen.push(key),
    });
    await broken.append(numbers(3));
    await until(() => seen.length === 3);
    expect(await consumer.stop()).toEqual({ drained: true });
    expect((await queue.groups({ topic: "orders" }))[0]?.lag.count).toBe(0);
    await broken.close();
  });
});

function refuse(): never {
  throw new Error("not today");
}
