import type { OutboxStatus } from "rowpost/admin";
import type { z } from "zod";
import type { count, overview, relay, topic } from "./schemas.ts";

type Count = z.infer<typeof count>;
type StateCounts = z.infer<typeof overview>["states"];
type Problem = z.infer<typeof overview>["problems"][number];

function counted({ atLeast, count }: { readonly atLeast: boolean; readonly count: number }): Count {
  return { value: count, relation: atLeast ? "gte" : "eq" };
}

const UNFINISHED = ["pending", "sending", "failed", "suspended"] as const;

/** Of the unfinished states; those without messages have 0. */
export function countsOf({ totals }: OutboxStatus): StateCounts {
  return UNFINISHED.map((state) => ({
    state,
    count: counted(totals.find((total) => total.state === state) ?? { count: 0, atLeast: false }),
  }));
}

/** States counted by topic only in part: a missing topic is unknown. */
export function statesInPart({ counts, totals }: OutboxStatus): ReadonlySet<string> {
  return new Set([...counts, ...totals].filter(({ atLeast }) => atLeast).map(({ state }) => state));
}

/** Topics with unfinished messages, suspended ones and resting ones. */
export function topicsOf(status: OutboxStatus): z.infer<typeof topic>[] {
  const { counts, suspensions } = status;
  const resting = restingOf(status);
  const rules = suspensions.filter(({ scope }) => scope === "topic");
  const unknown = statesInPart(status);
  const names = new Set([
    ...counts.map((one) => one.topic),
    ...rules.map(({ value }) => value),
    ...resting.map((one) => one.topic),
  ]);
  return [...names].sort().map((name) => {
    const mine = counts.filter((one) => one.topic === name);
    return {
      topic: name,
      states: [
        ...mine.map((one) => ({ state: one.state, count: counted(one) })),
        ...UNFINISHED.filter((state) => unknown.has(state) && !mine.some((one) => one.state === state)).map(
          (state) => ({ state, count: counted({ count: 0, atLeast: true }) }),
        ),
      ],
      oldestAgeMs: Math.max(0, ...mine.map(({ oldestAgeMs }) => oldestAgeMs)),
      suspension: rules.find(({ value }) => value === name),
      resting: resting.filter((one) => one.topic === name),
    };
  });
}

export function relaysOf({ instances, leases }: OutboxStatus): z.infer<typeof relay>[] {
  return instances.map(({ alive, label, owner, report, reportAgeMs, silentMs }) => ({
    owner,
    label,
    alive,
    silentMs,
    shards: leases.filter((lease) => lease.owner === owner).map(({ shard }) => shard),
    report: report && {
      ageMs: reportAgeMs ?? 0,
      version: report.version,
      inFlight: report.inFlight,
      windowSize: report.windowSize,
      onFailed: report.onFailed,
      brokers: report.brokers.map(({ awayForMs, name, reason }) => ({ name, awayForMs, reason })),
      restingTopics: [...report.restingTopics],
      moreResting: report.moreResting,
      lastError: report.lastError,
    },
  }));
}

export function unownedShards({ instances, leases }: OutboxStatus): number[] {
  const alive = new Set(instances.filter((instance) => instance.alive).map(({ owner }) => owner));
  return leases.filter(({ owner }) => owner === undefined || !alive.has(owner)).map(({ shard }) => shard);
}

export function problemsOf(status: OutboxStatus): Problem[] {
  const { counts, instances, suspensions, totals } = status;
  const alive = instances.filter((instance) => instance.alive);
  const unowned = unownedShards(status);
  const away = alive.flatMap(({ label, report }) =>
    (report?.brokers ?? []).flatMap(({ awayForMs, name, reason }): Problem[] =>
      awayForMs === undefined
        ? []
        : [{ kind: "broker away", subject: name, forMs: awayForMs, reason: reason ?? label }],
    ),
  );
  const failed = counts.filter(({ state }) => state === "failed");
  const shards: Count = { value: unowned.length, relation: "eq" };
  return [
    ...(alive.length === 0 ? [{ kind: "no relay" as const, subject: "", forMs: lastSign(status) }] : []),
    ...(alive.length > 0 && unowned.length > 0
      ? [{ kind: "shards unowned" as const, subject: [...new Set(unowned)].join(", "), count: shards }]
      : []),
    ...away,
    // Each relay rests a topic by itself; 0: its probe is due or running.
    ...[...new Map(restingOf(status).map((one) => [one.topic, one])).values()].map(({ reason, restsForMs, topic }) => ({
      kind: "topic rests" as const,
      subject: topic,
      reason,
      ...(restsForMs > 0 ? { forMs: restsForMs } : {}),
    })),
    ...failed.map((one) => ({ kind: "failed" as const, subject: one.topic, count: counted(one) })),
    // Listed, because an unknown topic would otherwise look healthy.
    ...totals
      .filter(({ atLeast, state }) => state === "failed" && atLeast)
      .map((all) => ({ kind: "failed" as const, subject: "", count: counted(all) })),
    ...suspensions.map(({ author, endsInMs, reason, scope, value }) => ({
      kind: "suspended" as const,
      subject: `${scope} ${value}`,
      reason,
      author,
      ...(endsInMs === null ? {} : { forMs: endsInMs }),
    })),
  ];
}

function lastSign({ instances }: OutboxStatus): number | undefined {
  return instances.length === 0 ? undefined : Math.min(...instances.map(({ silentMs }) => silentMs));
}

function restingOf({ instances }: OutboxStatus): z.infer<typeof topic>["resting"] {
  return instances
    .filter(({ alive }) => alive)
    .flatMap(({ label, report }) => (report?.restingTopics ?? []).map((one) => ({ ...one, relay: label })));
}
