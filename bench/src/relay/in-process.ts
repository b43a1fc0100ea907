/**
 * A relay in this process that drains into the instant broker, timed from its first work to the
 * last.
 */
import { type Broker, createRelay, type Database } from "rowpost";
import { instantBroker } from "../broker.ts";
import { type Measurement, type MeterSources, startMeter } from "../measure/meter.ts";
import type { ProfileRun } from "../measure/profile.ts";
import { checkDrained } from "../raw/drain.ts";
import { openRowpost } from "../rowpost.ts";
import type { BenchDatabase } from "../servers/server.ts";

export interface DrainRequest {
  readonly database: BenchDatabase;
  readonly messages: number;
  readonly sendingMark: "on" | "off";
  readonly onSent?: "keep" | "delete" | "archive" | undefined;
  /** Default: a broker that answers at once. Its publish is wrapped for counting. */
  readonly broker?: (database: Database) => Broker;
  readonly otherCpuMs?: MeterSources["otherCpuMs"];
  /** Notified when the work begins and ends. */
  readonly profile?: ProfileRun | undefined;
}

const LIMIT_MS = 300_000;

/**
 * Starts a relay on the waiting rows and measures until the last outcome is in the table. The clock
 * starts when the relay has its shards, right before its first scan, because a rate excludes
 * opening sessions. Their statements do count.
 */
export async function measureDrain(request: DrainRequest): Promise<Measurement> {
  const { database, messages } = request;
  const rowpost = await openRowpost(database.url);
  const progress = countTo(messages);
  const broker = counting(request.broker?.(rowpost.database) ?? instantBroker(() => undefined), progress.add);
  const sources: MeterSources = {
    serverCpuMs: () => database.serverCpuMs(),
    statements: () => database.statements(),
    ...(request.otherCpuMs === undefined ? {} : { otherCpuMs: request.otherCpuMs }),
  };
  const meter = await startMeter(sources);
  const relay = createRelay({
    database: rowpost.database,
    broker,
    sendingMark: request.sendingMark,
    retention: { onSent: request.onSent ?? "keep" },
    onFaultPoint(point) {
      if (point !== "acquired") return;
      meter.restart();
      request.profile?.begin();
    },
  });
  await relay.start();
  await progress.done;
  const polls = await untilSettled(database, messages);
  request.profile?.end();
  const measured = await meter.stop(messages);
  await relay.stop();
  await rowpost.close();
  await broker.close();
  await checkDrained(database);
  const published = progress.count();
  if (published !== messages) throw new Error(`${published} messages were published for ${messages} rows`);
  // Subtracts the bench's own statements.
  return { ...measured, statements: measured.statements - (database.countsControl ? polls : 0) };
}

const ANY_LEFT = `SELECT
  (SELECT COUNT(*) FROM (SELECT id FROM local_message WHERE state = 1 LIMIT 1) AS sending) +
  (SELECT COUNT(*) FROM (SELECT id FROM local_message WHERE state = 0 AND next_retry_at IS NULL LIMIT 1) AS waiting)`;

/** Polls until no row waits for an outcome. Returns the number of statements for it. */
export async function untilSettled(database: BenchDatabase, messages: number): Promise<number> {
  const end = performance.now() + LIMIT_MS;
  for (let polls = 1; performance.now() < end; polls += 1) {
    if ((await database.number(ANY_LEFT)) === 0) return polls;
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  throw new Error(`the relay did not finish ${messages} messages within ${LIMIT_MS / 1000} s`);
}

interface Count {
  readonly add: (number: number) => void;
  count(): number;
  /** Resolves at the expected number; rejects after the time limit. */
  readonly done: Promise<void>;
}

function countTo(expected: number): Count {
  let count = 0;
  let reached: () => void = () => undefined;
  let limit: NodeJS.Timeout | undefined;
  const done = new Promise<void>((resolve, reject) => {
    reached = resolve;
    limit = setTimeout(
      () => reject(new Error(`${count} of ${expected} messages after ${LIMIT_MS / 1000} s`)),
      LIMIT_MS,
    );
  });
  return {
    add(number) {
      count += number;
      if (count < expected) return;
      clearTimeout(limit);
      reached();
    },
    count: () => count,
    done,
  };
}

function counting(broker: Broker, add: (number: number) => void): Broker {
  return {
    name: broker.name,
    features: broker.features,
    async publish(batch, options) {
      const results = await broker.publish(batch, options);
      add(results.reduce((sum, { status }) => sum + (status === "sent" ? 1 : 0), 0));
      return results;
    },
    check: () => broker.check(),
    close: () => broker.close(),
  };
}
