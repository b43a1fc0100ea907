/** Large bodies: memory of a relay process, and over a narrow link. */
import { measureBeside } from "../isolation/beside.ts";
import { startEndpoints } from "../isolation/endpoints.ts";
import { openNarrowLink } from "../isolation/narrow-link.ts";
import { rounded } from "../measure/statistics.ts";
import { startRelayProcess } from "../relay/processes.ts";
import { atLeast, atMost, resultOf } from "../results/result.ts";
import { type BenchContext, type Scenario, wanted } from "./scenario.ts";

const SCENARIO = "isolation-bytes";
const MEGABYTE = 1_000_000;
/** A relay's share of a container with 1 GB. */
const RSS_MB = 512;
const LARGE = { rows: 1_000, bytes: MEGABYTE, answersAfterMs: 2_000 } as const;
const HUGE = { rows: 80, bytes: 4 * 1_048_576, bytesPerSecond: 12_000_000, withinSeconds: 90 } as const;
/** With `--quick`. */
const QUICK_ROWS = 4;

const PARTS: Readonly<Record<string, (context: BenchContext) => Promise<void>>> = { large: largeBodies, narrow };

export const isolationBytes: Scenario = {
  variants: Object.keys(PARTS),
  async measure(context) {
    for (const [name, part] of Object.entries(PARTS)) if (wanted(context, name)) await part(context);
  },
};

async function largeBodies(context: BenchContext): Promise<void> {
  const rows = context.options.quick ? QUICK_ROWS : (context.options.messages ?? LARGE.rows);
  await measureBeside(context, SCENARIO, {
    variant: `${rows} bodies of 1 MB, answered after 2 s`,
    seconds: 30,
    answers: { bad: { afterMs: LARGE.answersAfterMs } },
    load: (database) => database.load({ kind: "waiting", count: rows, first: 1, topic: "bad", bodyBytes: LARGE.bytes }),
    async alsoOf({ relay, endpoints }) {
      const highest = rounded((relay.memory()?.highest ?? Number.NaN) / MEGABYTE, 0);
      return {
        figures: { "highest RSS MB": highest, "large delivered": endpoints.arrivals("bad") },
        targets: [atMost("highest RSS MB", highest, RSS_MB)],
      };
    },
  });
}

/** SQLite has no link. */
async function narrow(context: BenchContext): Promise<void> {
  const { database } = context;
  if (database.product === "sqlite") return;
  const rows = context.options.quick ? QUICK_ROWS : (context.options.messages ?? HUGE.rows);
  context.progress(`loading ${rows} bodies of 4 MiB`);
  await database.clear();
  await database.load({ kind: "waiting", count: rows, first: 1, topic: "bad", bodyBytes: HUGE.bytes });
  await database.tidy();
  const server = new URL(database.url);
  const link = await openNarrowLink(
    server,
    Number(server.port || (database.product === "postgres" ? 5432 : 3306)),
    HUGE.bytesPerSecond,
  );
  const endpoints = await startEndpoints({});
  const relayUrl = new URL(server);
  relayUrl.hostname = "127.0.0.1";
  relayUrl.port = String(link.port);
  context.progress("draining over a link of 12 MB/s");
  const relay = await startRelayProcess({
    url: relayUrl.href,
    sendingMark: "on",
    label: "bench",
    record: false,
    endpoints: endpoints.url,
  });
  const startedMs = performance.now();
  const secondsSince = (): number => (performance.now() - startedMs) / 1000;
  const epoch = (): Promise<number> => database.number("SELECT COALESCE(MAX(epoch), 0) FROM local_message_shard");
  let acquired = 0;
  while (endpoints.arrivals("bad") < rows && secondsSince() < HUGE.withinSeconds) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    if (acquired === 0) acquired = await epoch();
  }
  const seconds = rounded(secondsSince(), 1);
  const delivered = endpoints.arrivals("bad");
  const lost = (await epoch()) - acquired;
  const highest = rounded((relay.memory()?.highest ?? Number.NaN) / MEGABYTE, 0);
  await relay.stop();
  await endpoints.close();
  await link.close();
  const line = resultOf({
    scenario: SCENARIO,
    database,
    variant: `${rows} bodies of 4 MiB over 12 MB/s`,
    ours: [],
    figures: { delivered, "for s": seconds, "leases lost": lost, "highest RSS MB": highest },
    targets: () => [
      atLeast("delivered", delivered, rows),
      atMost("leases lost", lost, 0),
      atMost("highest RSS MB", highest, RSS_MB),
    ],
  });
  context.report({ ...line, messages: rows, runs: 1 });
}
