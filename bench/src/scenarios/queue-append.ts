/**
 * Appends of 100 messages by 4 producers of one process, compared with the same rows by hand: in
 * one connection's consecutive transactions, and on a connection for each producer, which keeps no
 * order.
 */
import type { Measurement } from "../measure/meter.ts";
import { appendAll } from "../queue/measured.ts";
import { rawAppend } from "../queue/raw-append.ts";
import { monthTable, openQueue } from "../queue/topic.ts";
import { atLeast, resultOf } from "../results/result.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { type BenchContext, inTurnTold, type Scenario } from "./scenario.ts";

const PRODUCERS = 4;
const BATCH = 100;
const MESSAGES = 60_000;

export const queueAppend: Scenario = { variants: [], measure };

async function measure(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const messages = Math.ceil((options.messages ?? MESSAGES) / BATCH) * BATCH;
  context.progress("warm-up");
  await rawRun(database, BATCH * 50, PRODUCERS);
  await ourRun(database, BATCH * 50);
  const measured = await inTurnTold(
    context,
    () => rawRun(database, messages, 1),
    () => ourRun(database, messages),
  );
  const figures = database.product === "sqlite" ? {} : await besideEachOther(context, messages);
  context.report(
    resultOf({
      scenario: "queue-append",
      database,
      variant: `${BATCH} messages in one call, ${PRODUCERS} producers`,
      ...measured,
      figures,
      targets: (result) => [atLeast("ratioToRaw", result.ratioToRaw, 0.85)],
    }),
  );
}

/** SQLite has one writer, so it would be the same. */
async function besideEachOther(context: BenchContext, messages: number) {
  context.progress(`raw on ${PRODUCERS} connections`);
  const { wallMs } = await rawRun(context.database, messages, PRODUCERS);
  return { [`raw on ${PRODUCERS} connections msg/s`]: Math.round((messages * 1_000) / wallMs) };
}

async function rawRun(database: BenchDatabase, messages: number, connections: number): Promise<Measurement> {
  const { close } = await openQueue(database, 1);
  await close();
  return await rawAppend(database, { messages, batch: BATCH, producers: connections });
}

async function ourRun(database: BenchDatabase, messages: number): Promise<Measurement> {
  const { queue, close } = await openQueue(database, PRODUCERS);
  const measured = await appendAll(database, queue, { messages, batch: BATCH, producers: PRODUCERS });
  await close();
  const rows = await database.number(`SELECT COUNT(*) FROM ${monthTable()}`);
  if (rows !== messages) throw new Error(`${rows} rows in the topic after ${messages} messages`);
  return measured;
}
