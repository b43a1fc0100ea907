/** Findings about the messages and relays of a table. */
import { diagnose } from "../../message/diagnoses/diagnosis.ts";
import { grouped } from "../../runtime/grouped.ts";
import { disagree, placeText } from "../../runtime/topic-patterns.ts";
import type { OutboxStatus } from "../message-admin.ts";
import type { Diagnosis } from "./diagnosis.ts";

/** How long a message may be due while a relay runs. */
const LATE_MS = 300_000;
/** A shorter absence of a broker is a restart. */
const AWAY_MS = 60_000;

/** Judges the data of `rowpost status`. */
export function judgeWork(status: OutboxStatus): readonly Diagnosis[] {
  return [...relays(status), ...places(status), ...brokers(status), ...messages(status), ...suspensions(status)];
}

function relays({ instances, leases, oldestDue }: OutboxStatus): Diagnosis[] {
  const alive = instances.filter((instance) => instance.alive);
  if (alive.length === 0) {
    if (oldestDue === undefined) return [diagnose("no-relay", {})];
    const due = { message: oldestDue.id, duration: durationText(oldestDue.waitingMs) };
    return [diagnose("no-relay-and-due", due)];
  }
  const owners = new Set(alive.map(({ owner }) => owner));
  const orphans = leases.filter(({ owner }) => owner === undefined || !owners.has(owner)).length;
  const versions = [...new Set(alive.flatMap(({ report }) => report?.version ?? []))].sort();
  const found: Diagnosis[] = [];
  if (orphans > 0) found.push(diagnose("shards-alone", { orphans, shards: leases.length }));
  if (versions.length > 1) found.push(diagnose("versions", { versions: versions.join(", ") }));
  return found;
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
  return [diagnose("disagreeing", { relays: told.join("; ") })];
}

function brokers({ instances }: OutboxStatus): Diagnosis[] {
  const away = new Map<string, Diagnosis>();
  const resting = new Map<string, Diagnosis>();
  for (const { alive, label: relay, report } of instances) {
    if (!alive || report === undefined) continue;
    for (const { awayForMs, name: broker, reason = "" } of report.brokers) {
      if (awayForMs === undefined || awayForMs < AWAY_MS) continue;
      away.set(broker, diagnose("broker-away", { broker, duration: durationText(awayForMs), relay, reason }));
    }
    for (const { reason, topic } of report.restingTopics)
      resting.set(topic, diagnose("topic-rests", { topic, reason }));
  }
  return [...away.values(), ...resting.values()];
}

function messages({ instances, oldestDue, suspensions: rules, totals }: OutboxStatus): Diagnosis[] {
  const { atLeast = false, count = 0 } = totals.find(({ state }) => state === "failed") ?? {};
  const found: Diagnosis[] = [];
  if (count > 0) {
    const messages = `${atLeast ? "at least " : ""}${count} message${count === 1 ? "" : "s"}`;
    found.push(diagnose("failed", { messages, count: atLeast ? `${count}+` : count }));
  }
  const isLate = oldestDue !== undefined && oldestDue.waitingMs > LATE_MS;
  const isHeld = rules.some(({ scope }) => scope === "relay");
  if (isLate && !isHeld && instances.some(({ alive }) => alive)) {
    const { id: message, topic, waitingMs } = oldestDue;
    found.push(diagnose("late", { message, topic, duration: durationText(waitingMs) }));
  }
  return found;
}

function suspensions({ suspensions: rules }: OutboxStatus): Diagnosis[] {
  return rules
    .filter(({ endsInMs }) => endsInMs === null)
    .map(({ author, reason, scope, value }) => {
      const scopeOption = scope === "relay" ? "--all-relay" : `--${scope.replace("_", "-")} ${value}`;
      return diagnose("suspended", { scope, value, author, reason, scopeOption });
    });
}

/** Rounded for people. */
function durationText(ms: number): string {
  const [unit, size] = ms < 120_000 ? ["s", 1_000] : ms < 7_200_000 ? ["min", 60_000] : ["h", 3_600_000];
  return `${Math.round(ms / size)} ${unit}`;
}
