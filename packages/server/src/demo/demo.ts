/** The demo: a shop, its relay and a real consumer, judged by the consumer's own table. */
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { createMetricsRegistry, createOutbox, createRelay, defaultLayout, migrate, type Relay } from "rowpost";
import type { OutboxStatus } from "rowpost/admin";
import { brokerKind } from "../broker-url.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import type { DatabaseAddress } from "../database-url.ts";
import { watchSignals } from "../signals.ts";
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";
import { CONSUMERS } from "./consumers.ts";
import { openDemoConsole } from "./demo-console.ts";
import { type Orders, openOrders } from "./orders.ts";
import { type DemoPlace, namedPlace, temporaryPlace } from "./place.ts";
import { openShop, type Shop } from "./shop.ts";
import { createRecent, type Recent, type Snapshot, troubleLogger } from "./snapshot.ts";
import { createDemoTables, type DemoTables, orderCreated, type StateCounts } from "./tables.ts";
import { isGood, judge, type Verdict, verdictLine } from "./verdict.ts";
import { createView, type View } from "./view.ts";

export interface DemoOptions {
  readonly database: DatabaseAddress | undefined;
  /** Of a broker that {@link CONSUMERS} has; undefined: HTTP to a consumer on this host. */
  readonly brokerUrl: string | undefined;
  readonly orders: number | undefined;
  readonly ratePerSecond: number | undefined;
  readonly once: boolean;
  readonly keep: boolean;
}

interface Run {
  readonly place: DemoPlace;
  readonly tables: DemoTables;
  readonly orders: Orders;
  readonly consumer: DemoConsumer;
  readonly relay: Relay;
  readonly shop: Shop;
  readonly recent: Recent;
  readonly view: View;
}

/** Without progress for this long, the missing messages count as lost. */
const STALLED_MS = 30_000;
const LOOK_MS = 100;
const LEASES_MS = 1_000;

/**
 * Returns 0 if nothing was lost or phantom and everything was sent, else 1. The verdict is the last
 * line.
 */
export async function runDemo(context: CommandContext, options: DemoOptions): Promise<ExitCode> {
  const view = createView(context);
  const signals = watchSignals(() => view.end());
  const closers: (() => unknown)[] = [];
  try {
    const run = await prepare(context, options, view, signals.signal, (close) => closers.push(close));
    await watch(run, options, signals.signal);
    await run.relay.stop();
    const verdict = await judgeRun(run);
    view.end();
    sayEnd(run, view, options);
    context.stdout.write(`${verdictLine(verdict)}\n`);
    return isGood(verdict) ? 0 : 1;
  } finally {
    view.end();
    for (const close of closers.reverse())
      await Promise.resolve()
        .then(close)
        .catch(() => undefined);
    signals.end();
  }
}

async function prepare(
  context: CommandContext,
  options: DemoOptions,
  view: View,
  signal: AbortSignal,
  atEnd: ConsumerParts["atEnd"],
): Promise<Run> {
  const runId = Date.now().toString(36);
  const recent = createRecent();
  const say = (text: string): void => view.say(text);
  const place = await (options.database === undefined
    ? temporaryPlace(options.keep)
    : namedPlace(options.database, say));
  atEnd(() => place.close());
  const { database } = place;
  await migrate(database, { layout: defaultLayout });
  const tables = createDemoTables(database, defaultLayout, runId);
  atEnd(() => tables.close());
  await tables.create();
  const outbox = createOutbox({ database, createdBy: "demo shop", types: [orderCreated] });
  const onTrouble = (text: string): void => recent.failure(text);
  const logger = troubleLogger("consumer", onTrouble);
  const orders = await openOrders({ database, outbox, run: runId, logger });
  const consumer = await startConsumer(options, {
    orders,
    database,
    say,
    onTrouble,
    atEnd,
    environment: context.environment,
  });
  atEnd(() => orders.close());
  const metrics = createMetricsRegistry();
  const relay = createRelay({
    database,
    metrics,
    broker: consumer.broker,
    types: [orderCreated],
    label: `${hostname()}:${process.pid}`,
    // Short waits, so that refused messages are seen to arrive. A real relay is more patient.
    retry: { baseMs: 50, factor: 2, maxMs: 1_000, maxAttempts: 20 },
    poll: { minMs: 5, maxMs: 50 },
    // The picture and the last line show what happened.
    logger: "silent",
  });
  listen(relay, recent);
  await relay.start();
  atEnd(() => relay.stop());
  view.say(`orders in ${place.address.label}, messages to ${consumer.label}`);
  // A demo that ends by itself would close while its link is in use.
  if (!options.once) {
    const served = await openDemoConsole({ place, metrics, isReady: () => relay.health().ready, say, onTrouble });
    atEnd(() => served.close());
  }
  const shop = openShop({
    database,
    outbox,
    topic: consumer.topic,
    run: runId,
    orders: options.orders ?? Number.POSITIVE_INFINITY,
    ratePerSecond: options.ratePerSecond,
    workers: database.dialect === "sqlite" ? 1 : 8,
    signal,
    hasOrder: (orderNo) => tables.hasOrder(orderNo),
    onTrouble,
  });
  return { place, tables, orders, consumer, relay, shop, recent, view };
}

async function startConsumer({ brokerUrl }: DemoOptions, parts: ConsumerParts): Promise<DemoConsumer> {
  if (brokerUrl === undefined) return await (await import("./http-consumer.ts")).startHttpConsumer(parts);
  const load = CONSUMERS[brokerKind(brokerUrl)];
  if (load === undefined) throw new Error(`the demo has no consumer for ${brokerKind(brokerUrl)}`);
  return await (await load())(brokerUrl, parts);
}

function listen(relay: Relay, recent: Recent): void {
  relay.on("retry", ({ message, reason, retryInMs }) =>
    recent.failure(`${message.key}: ${reason}; again in ${Math.round(retryInMs)} ms`),
  );
  relay.on("failed", ({ message, reason }) => recent.failure(`${message.key} failed: ${reason}`));
  relay.on("topicPaused", ({ topic, reason }) => recent.failure(`topic ${topic} rests: ${reason}`));
  relay.on("brokerAway", ({ reason }) => recent.failure(`broker away: ${reason}`));
  relay.on("databaseAway", ({ error }) => recent.failure(`database away: ${String(error)}`));
}

/** Shows the run until a signal, or with `once` until all orders are placed and consumed. */
async function watch(run: Run, options: DemoOptions, signal: AbortSignal): Promise<void> {
  const { shop, orders, tables, recent, view } = run;
  let placed = false;
  const end = (): void => {
    placed = true;
  };
  shop.done.then(end, end);
  const leases = createLeaseLook(run);
  let movedAt = performance.now();
  let before = "";
  for (;;) {
    const states = await tables.messageStates().catch(() => undefined);
    if (states !== undefined) {
      recent.sent(states.sent + states.consumed);
      view.show(snapshotOf(run, states, await leases.look()));
      const now = JSON.stringify([states, orders.received, shop.committed, shop.rolledBack]);
      if (now !== before) movedAt = performance.now();
      before = now;
      const ends = options.once || signal.aborted;
      if (ends && placed && isSettled(states, run)) break;
    }
    if (
      (options.once || signal.aborted) &&
      performance.now() - movedAt > (signal.aborted ? STALLED_MS / 3 : STALLED_MS)
    )
      break;
    await sleep(LOOK_MS);
  }
  await leases.close();
  // Rejects when an order could not be placed for a minute.
  if (placed) await shop.done;
}

function isSettled(states: StateCounts, { shop }: Run): boolean {
  return states.consumed + states.failed === shop.committed;
}

function createLeaseLook({ place }: Run): { look(): Promise<Snapshot["leases"]>; close(): Promise<void> } {
  const admin = place.database.messageAdmin({ layout: defaultLayout });
  let lookedAt = Number.NEGATIVE_INFINITY;
  let leases: Snapshot["leases"] = [];
  return {
    async look() {
      if (performance.now() - lookedAt < LEASES_MS) return leases;
      lookedAt = performance.now();
      const status = await admin.status().catch(() => undefined);
      if (status !== undefined) leases = leasesOf(status);
      return leases;
    },
    close: () => admin.close(),
  };
}

function leasesOf(status: OutboxStatus): Snapshot["leases"] {
  return status.instances
    .map(({ owner, label }) => ({
      label,
      shards: status.leases.filter((lease) => lease.owner === owner).length,
      of: status.leases.length,
    }))
    .filter(({ shards }) => shards > 0);
}

function snapshotOf(
  { place, consumer, shop, orders, recent }: Run,
  states: StateCounts,
  leases: Snapshot["leases"],
): Snapshot {
  return {
    database: place.address.label,
    consumer: consumer.label,
    committed: shop.committed,
    rolledBack: shop.rolledBack,
    states,
    received: orders.received,
    duplicates: orders.duplicates,
    trouble: consumer.trouble ?? new Map(),
    rates: recent.rates,
    leases,
    lastFailures: recent.lastFailures,
  };
}

async function judgeRun({ tables, orders, shop }: Run): Promise<Verdict> {
  const states = await tables.messageStates();
  return {
    ...judge(await tables.effects(), await tables.committedOrders()),
    rolledBack: shop.rolledBack,
    sent: states.sent + states.consumed,
    consumed: states.consumed,
    duplicates: orders.duplicates,
  };
}

function sayEnd({ consumer, orders, place }: Run, view: View, options: DemoOptions): void {
  const trouble = [...(consumer.trouble ?? [])].map(([what, count]) => `${what} ×${count}`).join(", ");
  view.say(
    `the consumer handled ${orders.received} orders, and passed over ${orders.duplicates} that came again${trouble === "" ? "" : `; it made trouble: ${trouble}`}`,
  );
  if (options.database === undefined && options.keep) {
    view.say(`kept ${place.address.label}; look at it with: rowpost status --database ${place.address.label}`);
  }
}
