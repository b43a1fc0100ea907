/**
 * Rate of groups that read a topic: a record for each message, a record for a batch, three groups,
 * and beside things that must not matter: an old snapshot and waiting redeliveries.
 */
import { type Measurement, rateOf } from "../measure/meter.ts";
import { median, rounded } from "../measure/statistics.ts";
import { consumeAll } from "../queue/measured.ts";
import { rawConsume } from "../queue/raw-consume.ts";
import { fillTopic, type OpenedQueue, openQueue, TOPIC } from "../queue/topic.ts";
import { atLeast, atMost, type BenchResult, msPer1000, ratioOfRuns, resultOf } from "../results/result.ts";
import type { BenchDatabase } from "../servers/server.ts";
import { type BenchContext, inTurn, type Scenario, wanted } from "./scenario.ts";

const SCENARIO = "queue-consume";
const MESSAGES = 50_000;
const WARM_UP = 5_000;
const BATCH = 500;
const WAITING = 100_000;

type Records = "each" | "batch";

export const queueConsume: Scenario = {
  variants: ["each", "batch", "three-groups", "snapshot", "redeliveries"],
  measure: measureAll,
};

async function measureAll(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const messages = options.messages ?? MESSAGES;
  const opened = await openQueue(database, 4);
  try {
    await fillTopic(database, opened.queue, messages);
    await consumeAll(context.database, opened, {
      messages: Math.min(WARM_UP, messages),
      groups: ["warm"],
      records: "each",
    });
    if (wanted(context, "each")) await besideRaw(context, opened, messages, "each");
    if (wanted(context, "batch")) await besideRaw(context, opened, messages, "batch");
    if (wanted(context, "three-groups")) await threeGroups(context, opened, messages);
    if (wanted(context, "snapshot") && database.product !== "sqlite") {
      await besideOther(context, opened, messages, "an open REPEATABLE READ snapshot", openSnapshot);
    }
    if (wanted(context, "redeliveries")) {
      await besideOther(context, opened, messages, `${WAITING.toLocaleString("en-US")} waiting redeliveries`, waiting);
    }
  } finally {
    await opened.close();
  }
}

let groups = 0;
function nextGroup(): string {
  groups += 1;
  return `group-${groups}`;
}

async function besideRaw(
  context: BenchContext,
  opened: OpenedQueue,
  messages: number,
  records: Records,
): Promise<void> {
  const { database, options } = context;
  const measured = await inTurn(
    options.runs,
    (run) => {
      context.progress(`records ${records}: raw ${run + 1} of ${options.runs}`);
      return rawConsume(database, { messages, batch: BATCH, records, group: nextGroup() });
    },
    (run) => {
      context.progress(`records ${records}: ours ${run + 1} of ${options.runs}`);
      return consumeAll(context.database, opened, { messages, groups: [nextGroup()], records });
    },
  );
  context.report(
    resultOf({
      scenario: SCENARIO,
      database,
      variant: records === "each" ? "one group, a record for each message" : "one group, a record for a batch",
      ...measured,
      targets: (result) => (records === "each" ? [atLeast("ratioToRaw", result.ratioToRaw, 0.7)] : []),
    }),
  );
}

/** The cost of a delivery must not grow with the groups. */
async function threeGroups(context: BenchContext, opened: OpenedQueue, messages: number): Promise<void> {
  const { database, options } = context;
  const run = (count: number): Promise<Measurement> =>
    consumeAll(context.database, opened, {
      messages,
      groups: Array.from({ length: count }, nextGroup),
      records: "each",
    });
  const { raw: one, ours: three } = await inTurn(
    options.runs,
    (number) => {
      context.progress(`one group ${number + 1} of ${options.runs}`);
      return run(1);
    },
    (number) => {
      context.progress(`three groups ${number + 1} of ${options.runs}`);
      return run(3);
    },
  );
  const cost = rounded(cpuOf(three) / cpuOf(one), 3);
  context.report(
    resultOf({
      scenario: SCENARIO,
      database,
      variant: "three groups",
      ours: three,
      figures: { "one group msg/s": rounded(median(one.map(rateOf)), 0), costOfDeliveryToOne: cost },
      targets: () => [atMost("costOfDeliveryToOne", cost, 1.25)],
    }),
  );
}

function cpuOf(runs: readonly Measurement[]): number {
  return (msPer1000(runs, "clientCpuMs") ?? Number.NaN) + (msPer1000(runs, "serverCpuMs") ?? Number.NaN);
}

/** Adds the obstacle; returns a function that removes it. */
type Obstacle = (database: BenchDatabase, group: string) => Promise<() => Promise<void>>;

async function besideOther(
  context: BenchContext,
  opened: OpenedQueue,
  messages: number,
  name: string,
  put: Obstacle,
): Promise<void> {
  const { database, options } = context;
  const { raw: plain, ours } = await inTurn(
    options.runs,
    (run) => {
      context.progress(`without ${name}: ${run + 1} of ${options.runs}`);
      return consumeAll(context.database, opened, { messages, groups: [nextGroup()], records: "each" });
    },
    async (run) => {
      context.progress(`beside ${name}: ${run + 1} of ${options.runs}`);
      const group = nextGroup();
      const take = await put(database, group);
      try {
        return await consumeAll(context.database, opened, { messages, groups: [group], records: "each" });
      } finally {
        await take();
      }
    },
  );
  const ratioToPlain = rounded(ratioOfRuns(ours, plain), 3);
  context.report(
    resultOf({
      scenario: SCENARIO,
      database,
      variant: `beside ${name}`,
      ours,
      figures: { "without it msg/s": rounded(median(plain.map(rateOf)), 0), ratioToPlain },
      targets: (): BenchResult["targets"] => [atLeast("ratioToPlain", ratioToPlain, 0.9)],
    }),
  );
}

async function openSnapshot(database: BenchDatabase): Promise<() => Promise<void>> {
  const connection = await database.connect("program");
  if (database.product === "postgres") await connection.simple("BEGIN ISOLATION LEVEL REPEATABLE READ");
  else {
    await connection.simple("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    await connection.simple("START TRANSACTION WITH CONSISTENT SNAPSHOT");
  }
  await connection.run({ name: "look", text: "SELECT COUNT(*) AS rows_seen FROM message_consumption", params: [] });
  return async () => {
    await connection.simple("COMMIT");
    await connection.close();
  };
}

/** Rows of the group that come again in an hour. */
async function waiting(database: BenchDatabase, group: string): Promise<() => Promise<void>> {
  const when = {
    postgres: "clock_timestamp() + interval '1 hour', clock_timestamp(), clock_timestamp()",
    mysql: "UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)",
    mariadb: "UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)",
    sqlite:
      "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour'), strftime('%Y-%m-%d %H:%M:%f', 'now'), strftime('%Y-%m-%d %H:%M:%f', 'now')",
  }[database.product];
  const columns =
    "topic_id, consumer_group_id, partition_no, message_id, state, attempt, next_attempt_at, gmt_create, gmt_modified";
  const numbers = Array.from({ length: 1_000 }, (_, index) => index);
  for (let first = 0; first < WAITING; first += numbers.length) {
    const rows = numbers.map((number) => `('${TOPIC}', '${group}', 0, ${(first + number + 1) * 64}, 0, 1, ${when})`);
    await database.script(`INSERT INTO message_redelivery (${columns}) VALUES ${rows.join(", ")}`);
  }
  return async () => {
    await database.script(`DELETE FROM message_redelivery WHERE consumer_group_id = '${group}'`);
  };
}
