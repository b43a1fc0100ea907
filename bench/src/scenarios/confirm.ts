/**
 * Confirmations, 500 at a time, compared with a hand-written UPDATE of the same rows in a
 * transaction of the same size.
 */
import { type Confirmation, createOutbox } from "rowpost";
import { type Measurement, startMeter } from "../measure/meter.ts";
import { keyOf } from "../relay/messages.ts";
import { atLeast, resultOf } from "../results/result.ts";
import { openRowpost } from "../rowpost.ts";
import type { BareStatement, BenchDatabase } from "../servers/server.ts";
import { type BenchContext, inTurnTold, type Scenario } from "./scenario.ts";

const MESSAGES = 50_000;
const BATCH = 500;
const TYPE = "order.created";

export const confirm: Scenario = { variants: ["batches"], measure: measureAll };

async function measureAll(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const messages = options.messages ?? MESSAGES;
  context.progress("warm-up");
  await rawRun(database, Math.ceil(messages / 4));
  await ourRun(database, Math.ceil(messages / 4));
  const measured = await inTurnTold(
    context,
    () => rawRun(database, messages),
    () => ourRun(database, messages),
  );
  context.report(
    resultOf({
      scenario: "confirm",
      database,
      variant: `batches of ${BATCH}`,
      ...measured,
      figures: {},
      targets: ({ ratioToRaw }) => [atLeast("ratioToRaw", ratioToRaw, 0.85)],
    }),
  );
}

/** Keys of each batch, in the order of sending, as consumers would have them. */
function batchesOf(messages: number): string[][] {
  return Array.from({ length: Math.ceil(messages / BATCH) }, (_, batch) =>
    Array.from({ length: Math.min(BATCH, messages - batch * BATCH) }, (__, place) => keyOf(batch * BATCH + place)),
  );
}

function updateOf(database: BenchDatabase, keys: readonly string[]): BareStatement {
  const now = {
    mysql: "UTC_TIMESTAMP(3)",
    mariadb: "UTC_TIMESTAMP(3)",
    postgres: "now()",
    sqlite: "strftime('%Y-%m-%d %H:%M:%f', 'now')",
  }[database.product];
  const list = keys.map((_, index) => database.placeholder(index + 2)).join(", ");
  return {
    name: `bench_confirm_${keys.length}`,
    text: `UPDATE local_message SET state = 4, consumed_at = ${now}, next_retry_at = NULL, gmt_modified = ${now}, lock_version = lock_version + 1
  WHERE message_type = ${database.placeholder(1)} AND message_key IN (${list}) AND state = 2`,
    params: [TYPE, ...keys],
  };
}

async function rawRun(database: BenchDatabase, messages: number): Promise<Measurement> {
  await load(database, messages);
  const connection = await database.connect("program");
  const statements = batchesOf(messages).map((keys) => updateOf(database, keys));
  const meter = await startMeter(database);
  meter.restart();
  for (const statement of statements) {
    await connection.simple(database.product === "sqlite" ? "BEGIN IMMEDIATE" : "BEGIN");
    await connection.run(statement);
    await connection.simple("COMMIT");
  }
  const measured = await meter.stop(messages);
  await connection.close();
  await check(database, messages);
  return measured;
}

async function ourRun(database: BenchDatabase, messages: number): Promise<Measurement> {
  await load(database, messages);
  const rowpost = await openRowpost(database.url, 1);
  const outbox = createOutbox({ database: rowpost.database });
  const batches = batchesOf(messages).map((keys) => keys.map((key): Confirmation => ({ type: TYPE, key })));
  const meter = await startMeter(database);
  meter.restart();
  for (const batch of batches) await outbox.confirm(batch);
  const measured = await meter.stop(messages);
  await rowpost.close();
  await check(database, messages);
  return measured;
}

async function load(database: BenchDatabase, count: number): Promise<void> {
  await database.clear();
  await database.load({ kind: "finished", count, first: 0 });
  await database.tidy();
}

async function check(database: BenchDatabase, messages: number): Promise<void> {
  const consumed = await database.number("SELECT COUNT(*) FROM local_message WHERE state = 4");
  if (consumed !== messages) throw new Error(`${consumed} of ${messages} messages are consumed`);
}
