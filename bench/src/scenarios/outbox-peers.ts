/**
 * The same drain by other outbox libraries, in the same run on the same server: rate and CPU time
 * of each message.
 */
import type { Measurement } from "../measure/meter.ts";
import { rounded } from "../measure/statistics.ts";
import { PEERS, type Peer } from "../peers/peers.ts";
import { measurePeer } from "../peers/run.ts";
import { measureDrain } from "../relay/in-process.ts";
import { atLeast, atMost, ratioOfRuns, resultOf, shareOfCpu } from "../results/result.ts";
import { type BenchContext, inTurn, type Scenario, wanted } from "./scenario.ts";

const OUR_MESSAGES = 50_000;

export const outboxPeers: Scenario = { variants: PEERS.map(({ name }) => name), measure: measureAll };

async function measureAll(context: BenchContext): Promise<void> {
  const peers = PEERS.filter(
    ({ name, databases }) => databases.includes(context.database.product) && wanted(context, name),
  );
  const ours: Measurement[] = [];
  await ourRun(context, 5_000);
  for (const peer of peers) ours.push(...(await besidePeer(context, peer)));
  if (ours.length === 0) throw new Error(`no peer works on ${context.database.product}`);
  context.report(
    resultOf({
      scenario: "outbox-peers",
      database: context.database,
      variant: "rowpost",
      ours,
      figures: { settings: "defaults" },
    }),
  );
}

async function besidePeer(context: BenchContext, peer: Peer): Promise<Measurement[]> {
  const { options, database } = context;
  const { raw: theirs, ours } = await inTurn(
    options.runs,
    async (run) => {
      context.progress(`${peer.name}: run ${run + 1} of ${options.runs}`);
      const own = await context.another({ migrated: false });
      const measured = await measurePeer(peer, own, { messages: options.messages ?? peer.messages });
      await own.drop();
      return measured;
    },
    (run) => {
      context.progress(`rowpost beside ${peer.name}: run ${run + 1} of ${options.runs}`);
      return ourRun(context, options.messages ?? OUR_MESSAGES);
    },
  );
  const times = rounded(ratioOfRuns(ours, theirs), 1);
  const share = rounded(shareOfCpu(ours, theirs), 3);
  context.report(
    resultOf({
      scenario: "outbox-peers",
      database,
      variant: `${peer.name} ${peer.version}`,
      ours: theirs,
      figures: { "rowpost times as fast": times, "rowpost CPU share": share, settings: peer.settings },
      targets: () => [atLeast("timesAsFast", times, 10), atMost("cpuShare", share, 0.1)],
    }),
  );
  return ours;
}

async function ourRun({ database }: BenchContext, messages: number): Promise<Measurement> {
  await database.clear();
  await database.load({ kind: "waiting", count: messages, first: 1 });
  await database.tidy();
  return await measureDrain({ database, messages, sendingMark: "on" });
}
