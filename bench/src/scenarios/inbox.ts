/**
 * Cost of handling a message once: its effect (a row) and the inbox's record in one transaction on
 * 8 connections, compared with the same two INSERTs by hand.
 */
import { createInbox } from "rowpost/inbox";
import { type Measurement, startMeter } from "../measure/meter.ts";
import { PROGRAM_CONNECTIONS as CONNECTIONS, openRawConnections, spread } from "../raw/transactions.ts";
import { keyOf } from "../relay/messages.ts";
import { atLeast, resultOf } from "../results/result.ts";
import { openRowpost } from "../rowpost.ts";
import type { BareStatement, BenchDatabase } from "../servers/server.ts";
import { createOrderTable, insertOrder, orderValues } from "./business.ts";
import { type BenchContext, inTurn, type Scenario, wanted } from "./scenario.ts";

type Variant = "own" | "joined";

/** In a transaction of the inbox, or in one of the program after a savepoint. */
const VARIANTS: readonly Variant[] = ["own", "joined"];
const MESSAGES = 20_000;
const TYPE = "order.paid";
const CONSUMER = "bench";

export const inbox: Scenario = { variants: VARIANTS, measure: measureAll };

async function measureAll(context: BenchContext): Promise<void> {
  const { database } = context;
  await createOrderTable(database);
  const rowpost = await openRowpost(database.url, 1);
  await createInbox({ database: rowpost.database }).migrate();
  await rowpost.close();
  for (const variant of VARIANTS) if (wanted(context, variant)) await inboxVariant(context, variant);
}

async function inboxVariant(context: BenchContext, variant: Variant): Promise<void> {
  const { database, options } = context;
  const messages = options.messages ?? MESSAGES;
  context.progress(`${variant}: warm-up`);
  await rawRun(database, Math.ceil(messages / 4));
  await ourRun(database, Math.ceil(messages / 4), variant);
  const measured = await inTurn(
    options.runs,
    (run) => {
      context.progress(`${variant}: raw ${run + 1} of ${options.runs}`);
      return rawRun(database, messages);
    },
    (run) => {
      context.progress(`${variant}: ours ${run + 1} of ${options.runs}`);
      return ourRun(database, messages, variant);
    },
  );
  context.report(
    resultOf({
      scenario: "inbox",
      database,
      variant: variant === "own" ? "1 effect" : "1 effect, in the program's transaction",
      ...measured,
      figures: { connections: CONNECTIONS },
      // The savepoint and its release are two more statements, which hand-written code needs too.
      targets: (result) => (variant === "own" ? [atLeast("ratioToRaw", result.ratioToRaw, 0.9)] : []),
    }),
  );
}

function effectOf(database: BenchDatabase, number: number): BareStatement {
  return { name: "bench_order", text: insertOrder(database), params: orderValues(number) };
}

/** As written by hand. */
function identityOf(database: BenchDatabase, number: number): BareStatement {
  const now = { mysql: "UTC_TIMESTAMP(3)", mariadb: "UTC_TIMESTAMP(3)", postgres: "now()", sqlite: "datetime('now')" };
  const values = [1, 2, 3, 4].map((position) => database.placeholder(position)).join(", ");
  return {
    name: "bench_inbox",
    text: `INSERT INTO message_inbox (consumer, message_type, message_key, handled_by, handled_at) VALUES (${values}, ${now[database.product]})`,
    params: [CONSUMER, TYPE, keyOf(number), "bench"],
  };
}

async function rawRun(database: BenchDatabase, messages: number): Promise<Measurement> {
  await clear(database);
  const connections = await openRawConnections(database);
  const statements = Array.from({ length: messages }, (_, number) => [
    identityOf(database, number),
    effectOf(database, number),
  ]);
  const meter = await startMeter(database);
  meter.restart();
  await spread(messages, (index, number) =>
    connections.transaction(index, async (connection) => {
      for (const statement of statements[number] ?? []) await connection.run(statement);
    }),
  );
  const measured = await meter.stop(messages);
  await connections.close();
  await checkCount(database, messages);
  return measured;
}

async function ourRun(database: BenchDatabase, messages: number, variant: Variant): Promise<Measurement> {
  await clear(database);
  const rowpost = await openRowpost(database.url, CONNECTIONS);
  const consumer = createInbox({ database: rowpost.database, consumer: CONSUMER });
  const insert = insertOrder(database);
  const keys = Array.from({ length: messages }, (_, number) => keyOf(number));
  const meter = await startMeter(database);
  meter.restart();
  await spread(messages, async (_, number) => {
    const message = { type: TYPE, key: keys[number] ?? "" };
    if (variant === "own") {
      await consumer.handle(rowpost.database, { message }, (tx) => tx.query(insert, orderValues(number)));
    } else {
      await rowpost.database.transaction((tx) =>
        consumer.handle(tx, { message }, () => tx.query(insert, orderValues(number))),
      );
    }
  });
  const measured = await meter.stop(messages);
  await rowpost.close();
  await checkCount(database, messages);
  return measured;
}

async function clear(database: BenchDatabase): Promise<void> {
  await database.script("DELETE FROM message_inbox");
  await database.script("DELETE FROM bench_order");
}

async function checkCount(database: BenchDatabase, messages: number): Promise<void> {
  for (const table of ["message_inbox", "bench_order"]) {
    const rows = await database.number(`SELECT COUNT(*) FROM ${table}`);
    if (rows !== messages) throw new Error(`${rows} rows in ${table} after ${messages} messages`);
  }
}
