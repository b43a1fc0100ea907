/** What the messages and relays of a table tell. */

import { grouped } from "../../runtime/grouped.ts";
import { disagree, placeText } from "../../runtime/topic-patterns.ts";
import type { OutboxStatus, StateTotal } from "../message-admin.ts";
import type { Diagnosis } from "./diagnosis.ts";

/** A message may be due for so long while a relay runs. */
const LATE_MS = 300_000;
/** A broker that is away for less is being restarted. */
const AWAY_MS = 60_000;

/** Judges what `rowpost status` shows. */
export function judgeWork(status: OutboxStatus): readonly Diagnosis[] {
  return [...relays(status), ...places(status), ...brokers(status), ...messages(status), ...suspensions(status)];
}

function relays({ instances, leases, oldestDue }: OutboxStatus): Diagnosis[] {
  const alive = instances.filter((instance) => instance.alive);
  if (alive.length === 0) {
    const isDue = oldestDue !== undefined;
    return [
      {
        id: "D401",
        severity: isDue ? "error" : "warning",
        what: `no relay is running${isDue ? `, and message ${oldestDue.id} is due for ${durationText(oldestDue.waitingMs)}` : ""}`,
        why: "nothing of this table is sent",
        mend: "start one: rowpost relay --database URL --broker URL",
      },
    ];
  }
  const owners = new Set(alive.map(({ owner }) => owner));
  const orphans = leases.filter(({ owner }) => owner === undefined || !owners.has(owner));
  const versions = new Set(alive.flatMap(({ report }) => report?.version ?? []));
  return [
    ...(orphans.length === 0
      ? []
      : [
          {
            id: "D406",
            severity: "warning",
            what: `${orphans.length} of ${leases.length} shards belong to no relay that is running`,
            why: "their messages wait until a relay takes them over: a second after its death as a rule, after its lease at the latest",
            mend: "look again in half a minute; if they are still there, the relays' logs say why they do not take them",
          } as const,
        ]),
    ...(versions.size <= 1
      ? []
      : [
          {
            id: "D407",
            severity: "note",
            what: `relays of the versions ${[...versions].sort().join(", ")} run side by side`,
            why: "that is fine during an update, and confusing afterwards",
            mend: "update the older ones",
          } as const,
        ]),
  ];
}

function places({ instances }: OutboxStatus): Diagnosis[] {
  const live = instances.flatMap(({ alive, label, report }) =>
    alive && report !== undefined ? [{ label, report }] : [],
  );
  const disagreeing = live.filter(({ report }) => live.some((other) => disagree(report, other.report)));
  if (disagreeing.length === 0) return [];
  const relaysByPlace = grouped(disagreeing, ({ report }) => placeText(report));
  const told = [...relaysByPlace].map(
    ([place, relays]) => `${relays.map(({ label }) => label).join(" and ")} to ${place}`,
  );
  return [
    {
      id: "D409",
      severity: "warning",
      what: `relays of this table take each other's messages: ${told.join("; ")}`,
      why: "a message goes where the relay that takes it sends it, and is marked sent; relays with different lists of topics do not share the work, and keep no order between them",
      mend: "give the relays the same brokers and routes; or each service topics of its own (--route without --broker), or a table of its own",
    },
  ];
}

function brokers({ instances }: OutboxStatus): Diagnosis[] {
  const away = new Map<string, Diagnosis>();
  const resting = new Map<string, string>();
  for (const { alive, label, report } of instances) {
    if (!alive || report === undefined) continue;
    for (const { awayForMs, name, reason } of report.brokers) {
      if (awayForMs === undefined || awayForMs < AWAY_MS) continue;
      away.set(name, {
        id: "D402",
        severity: "error",
        what: `the broker ${name} is away for ${durationText(awayForMs)}, says ${label}: ${reason ?? ""}`,
        why: "nothing goes to it; messages wait and lose no attempt",
        mend: "bring it back, or mend its address or login; relays notice by themselves",
      });
    }
    for (const { reason, topic } of report.restingTopics) resting.set(topic, reason);
  }
  const topics = [...resting].map(
    ([topic, reason]): Diagnosis => ({
      id: "D403",
      severity: "warning",
      what: `the topic ${topic} rests: ${reason}`,
      why: "its messages wait, the others go on",
      mend: "mend what the broker says of it; relays try again by themselves, and reset-backoff brings its messages forward",
    }),
  );
  return [...away.values(), ...topics];
}

function messages({ instances, oldestDue, suspensions: rules, totals }: OutboxStatus): Diagnosis[] {
  const failed = totals.find(({ state }) => state === "failed");
  const found: Diagnosis[] = [];
  if (failed !== undefined && failed.count > 0) {
    found.push({
      id: "D404",
      severity: "warning",
      what: `failed for good: ${countText(failed)}`,
      why: "nobody sends them again, and later ones of their ordering keys wait behind them unless the relay says onFailed: skip",
      mend: "rowpost list --state failed shows the reasons; rowpost retry sends them again",
    });
  }
  const isLate = oldestDue !== undefined && oldestDue.waitingMs > LATE_MS;
  const isHeld = rules.some(({ scope }) => scope === "relay");
  if (isLate && !isHeld && instances.some(({ alive }) => alive)) {
    found.push({
      id: "D405",
      severity: "warning",
      what: `message ${oldestDue.id} of ${oldestDue.topic} is due for ${durationText(oldestDue.waitingMs)} although a relay runs`,
      why: "the relay is behind, or something holds this message",
      mend: `rowpost show ${oldestDue.id} says what holds it`,
    });
  }
  return found;
}

function suspensions({ suspensions: rules }: OutboxStatus): Diagnosis[] {
  return rules
    .filter(({ endsInMs }) => endsInMs === null)
    .map(({ author, reason, scope, value }) => ({
      id: "D408",
      severity: "note",
      what: `${scope} ${value} is suspended without an end, by ${author}: ${reason}`,
      why: "its messages wait until somebody resumes it",
      mend: scope === "relay" ? "rowpost resume --all-relay" : `rowpost resume --${scope.replace("_", "-")} ${value}`,
    }));
}

function countText({ atLeast, count }: StateTotal): string {
  return `${atLeast ? "at least " : ""}${count} message${count === 1 ? "" : "s"}`;
}

/** Rounded to what a person would say. */
function durationText(ms: number): string {
  const [unit, size] = ms < 120_000 ? ["s", 1_000] : ms < 7_200_000 ? ["min", 60_000] : ["h", 3_600_000];
  return `${Math.round(ms / size)} ${unit}`;
}
