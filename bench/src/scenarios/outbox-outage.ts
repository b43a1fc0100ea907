/**
 * A broker that is away for some seconds while messages come in: time from its return to the first
 * message, and to all waiting ones.
 */
import { createOutbox } from "rowpost";
import { startEndpoints } from "../isolation/endpoints.ts";
import { arrivedOf, GRACE_MS, HEALTHY, offerSteadily, RATE } from "../isolation/steady.ts";
import { medianOrNull, rounded } from "../measure/statistics.ts";
import { machineMs } from "../relay/messages.ts";
import { startRelayProcess } from "../relay/processes.ts";
import { atLeast, atMost, resultOf } from "../results/result.ts";
import { openRowpost } from "../rowpost.ts";
import type { BenchDatabase } from "../servers/server.ts";
import type { BenchContext, Scenario } from "./scenario.ts";

const AWAY_AT_SECOND = 4;
const BACK_AT_SECOND = 10;
const SECONDS = 16;
/** Probes come at least once a second. */
const FIRST_MS = 2_000;
/** A fraction of any drain's rate; at the pace of probes it would be minutes. */
const ALL_MS = 3_000;

interface Run {
  readonly offered: number;
  readonly delivered: number;
  readonly firstMs: number | null;
  readonly allMs: number | null;
}

export const outboxOutage: Scenario = { variants: [], measure: measureOutage };

async function measureOutage(context: BenchContext): Promise<void> {
  const { database, options } = context;
  const runs: Run[] = [];
  for (let number = 1; number <= options.runs; number += 1) {
    context.progress(`run ${number} of ${options.runs}`);
    await database.clear();
    runs.push(await runOutage(database));
  }
  const middle = (name: "firstMs" | "allMs"): number | null =>
    rounded(medianOrNull(runs.map(({ [name]: value }) => value)), 0);
  const total = (name: "offered" | "delivered"): number => runs.reduce((sum, { [name]: value }) => sum + value, 0);
  const [first, all] = [middle("firstMs"), middle("allMs")];
  const line = resultOf({
    scenario: "outbox-outage",
    database,
    variant: `away for ${BACK_AT_SECOND - AWAY_AT_SECOND} s at ${RATE} messages a second`,
    ours: [],
    figures: { "first after ms": first, "all after ms": all, offered: total("offered"), delivered: total("delivered") },
    targets: () => [
      atMost("first after ms", first, FIRST_MS),
      atMost("all after ms", all, ALL_MS),
      atLeast("delivered", total("delivered"), total("offered")),
    ],
  });
  context.report({ ...line, messages: RATE * SECONDS, runs: options.runs });
}

async function runOutage(database: BenchDatabase): Promise<Run> {
  const endpoints = await startEndpoints({});
  const rowpost = await openRowpost(database.url, 8);
  const relay = await startRelayProcess({
    url: database.url,
    sendingMark: "on",
    label: "bench",
    record: false,
    endpoints: endpoints.url,
    oneEndpoint: true,
  });
  let backMs = 0;
  let arrivedBefore = 0;
  const change = (second: number): readonly string[] => {
    if (second === AWAY_AT_SECOND) void endpoints.leave();
    if (second === BACK_AT_SECOND) {
      arrivedBefore = endpoints.arrivals(HEALTHY);
      void endpoints.comeBack();
      backMs = machineMs();
    }
    return [];
  };
  try {
    const outbox = createOutbox({ database: rowpost.database });
    const committing = await offerSteadily(outbox, SECONDS, change);
    await new Promise((resolve) => setTimeout(resolve, GRACE_MS));
    const { offered, delivered } = arrivedOf(committing, endpoints);
    const waited = [...committing.values()].filter((atMs) => atMs < backMs).length;
    const since = (atMs: number | undefined): number | null => (atMs === undefined ? null : atMs - backMs);
    return {
      offered,
      delivered,
      firstMs: since(endpoints.nthArrivalAt(HEALTHY, arrivedBefore)),
      allMs: since(endpoints.nthArrivalAt(HEALTHY, waited - 1)),
    };
  } finally {
    await relay.stop();
    await rowpost.close();
    await endpoints.close();
  }
}
