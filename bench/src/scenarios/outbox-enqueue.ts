/**
 * Cost of the library for a program that writes messages: a business row and a message in one
 * transaction on 8 connections, and 100 messages in one call, compared with the same statements by
 * hand.
 */
import { createOutbox } from "rowpost";
import { type Measurement, startMeter } from "../measure/meter.ts";
import { type ProfileRun, startProfile } from "../measure/profile.ts";
import type { EncodedMessage, RawStatements } from "../raw/statements.ts";
import { PROGRAM_CONNECTIONS as CONNECTIONS, openRawConnections, spread } from "../raw/transactions.ts";
import { atLeast, resultOf } from "../results/result.ts";
import { openRowpost } from "../rowpost.ts";
import type { BareStatement, BenchDatabase } from "../servers/server.ts";
import { createOrderTable, insertOrder, type OrderBody, orderMessage, orderValues } from "./business.ts";
import { type BenchContext, inTurn, type Scenario, wanted } from "./scenario.ts";

interface Variant {
  readonly name: string;
  readonly batch: number;
  readonly messages: number;
  readonly limit: number;
}

/** About three seconds each on two slow cores. */
const VARIANTS: readonly Variant[] = [
  { name: "single", batch: 1, messages: 8_000, limit: 0.9 },
  { name: "batch-100", batch: 100, messages: 40_000, limit: 0.85 },
];

export const outboxEnqueue: Scenario = { variants: VARIANTS.map(({ name }) => name), measure: measureAll };

async function measureAll(context: BenchContext): Promise<void> {
  await createOrderTable(context.database);
  for (const variant of VARIANTS) if (wanted(context, variant.name)) await enqueueVariant(context, variant);
}

async function enqueueVariant(context: BenchContext, variant: Variant): Promise<void> {
  const { database, statements, options } = context;
  const asked = options.messages ?? variant.messages;
  const messages = Math.max(1, Math.floor(asked / variant.batch)) * variant.batch;
  const raw = (count: number) => rawRun(database, statements, count, variant.batch);
  const ours = (count: number) => ourRun(database, count, variant.batch);
  context.progress(`${variant.name}: warm-up`);
  const warmUp = Math.ceil(messages / 4 / variant.batch) * variant.batch;
  await raw(warmUp);
  await ours(warmUp);
  const measured = await inTurn(
    options.runs,
    (run) => {
      context.progress(`${variant.name}: raw ${run + 1} of ${options.runs}`);
      return raw(messages);
    },
    (run) => {
      context.progress(`${variant.name}: ours ${run + 1} of ${options.runs}`);
      return ours(messages);
    },
  );
  context.progress(`${variant.name}: beside the profiler`);
  const profile = await startProfile();
  await ourRun(database, messages, variant.batch, profile);
  context.report(
    resultOf({
      scenario: "outbox-enqueue",
      database,
      variant: variant.batch === 1 ? "1 order + 1 message" : `1 order + ${variant.batch} messages in one call`,
      ...measured,
      figures: { connections: CONNECTIONS, "main thread %": await profile.shares() },
      targets: (result) => [atLeast("ratioToRaw", result.ratioToRaw, variant.limit)],
    }),
  );
}

interface RawTransaction {
  readonly order: BareStatement;
  readonly enqueue: BareStatement;
  readonly bodies: readonly OrderBody[];
}

/**
 * By hand with prepared statements; only the bodies become JSON within the measured time, since
 * every program has to do that.
 */
async function rawRun(
  database: BenchDatabase,
  statements: RawStatements,
  messages: number,
  batch: number,
): Promise<Measurement> {
  await database.clear();
  const transactions = Array.from({ length: messages / batch }, (_, index) =>
    rawTransaction(database, statements, index, batch),
  );
  const connections = await openRawConnections(database);
  let bytes = 0;
  const meter = await startMeter(database);
  meter.restart();
  await spread(transactions.length, async (index, number) => {
    const transaction = transactions[number];
    if (transaction === undefined) return;
    await connections.transaction(index, async (connection) => {
      await connection.run(transaction.order);
      for (const body of transaction.bodies) bytes += JSON.stringify(body).length;
      await connection.run(transaction.enqueue);
    });
  });
  const measured = await meter.stop(messages);
  await connections.close();
  if (bytes === 0) throw new Error("no body was written");
  await checkCount(database, messages);
  return measured;
}

function rawTransaction(
  database: BenchDatabase,
  statements: RawStatements,
  index: number,
  batch: number,
): RawTransaction {
  const numbers = Array.from({ length: batch }, (_, offset) => index * batch + offset + 1);
  const encoded = numbers.map((number): EncodedMessage => {
    const { type, key, topic, body } = orderMessage(number);
    return {
      type,
      key,
      topic,
      body: JSON.stringify(body),
      headers: null,
      contentType: null,
      orderingKey: null,
      delayMs: null,
      deliverAtMs: null,
      createdBy: "bench",
    };
  });
  return {
    order: { name: "bench_order", text: insertOrder(database), params: orderValues(index) },
    enqueue: statements.enqueue.insert(encoded),
    bodies: numbers.map((number) => orderMessage(number).body),
  };
}

async function ourRun(
  database: BenchDatabase,
  messages: number,
  batch: number,
  profile?: ProfileRun,
): Promise<Measurement> {
  await database.clear();
  const rowpost = await openRowpost(database.url, CONNECTIONS);
  const outbox = createOutbox({ database: rowpost.database, createdBy: "bench" });
  const insert = insertOrder(database);
  const transactions = Array.from({ length: messages / batch }, (_, index) =>
    Array.from({ length: batch }, (_, offset) => orderMessage(index * batch + offset + 1)),
  );
  const meter = await startMeter(database);
  meter.restart();
  profile?.begin();
  await spread(transactions.length, async (_, number) => {
    const batchOf = transactions[number] ?? [];
    await outbox.transaction(async (tx) => {
      await tx.query(insert, orderValues(number));
      await outbox.enqueue(tx, batchOf);
    });
  });
  profile?.end();
  const measured = await meter.stop(messages);
  await rowpost.close();
  await checkCount(database, messages);
  return measured;
}

async function checkCount(database: BenchDatabase, messages: number): Promise<void> {
  const rows = await database.number("SELECT COUNT(*) FROM local_message");
  if (rows !== messages) throw new Error(`${rows} rows in the table after ${messages} messages`);
}
