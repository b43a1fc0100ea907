/**
 * The same messages through other queues, in the same run on the same server: appended by one
 * producer in calls of 1,000, read by one group, and by three.
 */
import { type Measurement, rateOf } from "../measure/meter.ts";
import { cpuOfFamilyMs, processListeningOn } from "../measure/processes.ts";
import { median, rounded } from "../measure/statistics.ts";
import { QUEUE_PEERS, type QueuePeer } from "../peers/queue-peers.ts";
import { measurePeer } from "../peers/run.ts";
import { appendAll, consumeAll } from "../queue/measured.ts";
import { fillTopic, openQueue } from "../queue/topic.ts";
import { atLeast, resultOf, shareOfCpu } from "../results/result.ts";
import { type BenchContext, inTurn, type Scenario, wanted } from "./scenario.ts";

const SCENARIO = "queue-peers";
const MESSAGES = 50_000;
const GROUPS = 3;

export const queuePeers: Scenario = { variants: QUEUE_PEERS.map(({ name }) => name), measure: measureAll };

interface Work {
  readonly title: string;
  readonly words: readonly string[];
  readonly groups: number;
  /** Required speed of ours relative to the peer. */
  readonly target: number;
  readonly ours: (context: BenchContext, messages: number) => Promise<Measurement>;
}

const WORKS: readonly Work[] = [
  { title: "append", words: ["append"], groups: 1, target: 1.5, ours: ourAppend },
  { title: "consume, a record for each message", words: ["drain"], groups: 1, target: 1.5, ours: ourDrain("each", 1) },
  { title: "consume, a record for a batch", words: ["drain"], groups: 1, target: 4, ours: ourDrain("batch", 1) },
  { title: "3 groups", words: ["drain", "3"], groups: GROUPS, target: 2, ours: ourDrain("each", GROUPS) },
];

async function measureAll(context: BenchContext): Promise<void> {
  const { product } = context.database;
  if (product !== "postgres") throw new Error(`the other queues are measured on PostgreSQL, not on ${product}`);
  await ourAppend(context, 5_000);
  for (const peer of QUEUE_PEERS) {
    if (!wanted(context, peer.name)) continue;
    const missing = Object.entries(peer.needs).filter(([name]) => process.env[name] === undefined);
    if (missing.length > 0) {
      context.progress(
        `${peer.name} is left out: set ${missing.map(([name, what]) => `${name} to ${what}`).join(", ")}`,
      );
      continue;
    }
    for (const work of WORKS) if (work.groups === 1 || peer.hasGroups) await besidePeer(context, peer, work);
  }
}

async function besidePeer(context: BenchContext, peer: QueuePeer, work: Work): Promise<void> {
  const { options, database } = context;
  const { raw: theirs, ours } = await inTurn(
    options.runs,
    async (run) => {
      context.progress(`${peer.name}, ${work.title}: run ${run + 1} of ${options.runs}`);
      const own = await context.another({ migrated: false });
      const messages = options.messages ?? peer.messages;
      const request = { messages, words: work.words, groups: work.groups, ...redisCpu(peer) };
      const measured = await measurePeer(peer, own, request);
      await own.drop();
      return measured;
    },
    (run) => {
      context.progress(`rowpost beside ${peer.name}, ${work.title}: run ${run + 1} of ${options.runs}`);
      return work.ours(context, options.messages ?? MESSAGES);
    },
  );
  const times = rounded(median(ours.map((run, index) => rateOf(run) / rateOf(theirs[index] ?? run))), 2);
  context.report(
    resultOf({
      scenario: SCENARIO,
      database,
      variant: `${peer.name} ${peer.version}: ${work.title}`,
      ours: theirs,
      figures: {
        "rowpost msg/s": rounded(median(ours.map(rateOf)), 0),
        "rowpost times as fast": times,
        "rowpost CPU share": rounded(shareOfCpu(ours, theirs), 3),
        settings: peer.settings,
      },
      targets: () => [atLeast("timesAsFast", times, work.target)],
    }),
  );
}

/** CPU time of the server that the peer uses instead of the database. */
function redisCpu({ needs }: QueuePeer): { readonly otherCpuMs?: () => number | undefined } {
  if (needs["ROWPOST_BENCH_REDIS"] === undefined) return {};
  const pid = processListeningOn(Number(new URL(process.env["ROWPOST_BENCH_REDIS"] ?? "").port));
  return { otherCpuMs: () => (pid === undefined ? undefined : cpuOfFamilyMs(pid)) };
}

async function ourAppend({ database }: BenchContext, messages: number): Promise<Measurement> {
  const { queue, close } = await openQueue(database, 1);
  const measured = await appendAll(database, queue, { messages, batch: 1_000, producers: 1 });
  await close();
  return measured;
}

let made = 0;

function ourDrain(records: "each" | "batch", groups: number): Work["ours"] {
  return async ({ database }, messages) => {
    const opened = await openQueue(database, 4);
    await fillTopic(database, opened.queue, messages);
    made += 1;
    const names = Array.from({ length: groups }, (_, index) => `peers-${made}-${index}`);
    const measured = await consumeAll(database, opened, { messages, groups: names, records });
    await opened.close();
    return measured;
  };
}
