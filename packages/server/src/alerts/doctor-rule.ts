/**
 * What the doctor finds in the database itself, as alerts: looked at every ten minutes, and kept.
 */
import type { Database, Diagnosis, Logger, TableLayout } from "rowpost";
import type { Condition, Rules } from "./rules.ts";

const EVERY_MS = 600_000;
/** Of each text that is kept. */
const TEXT_LENGTH = 300;

/**
 * Told by other rules: D101 and D108 (cannot be reached) by `database`, D102 and D103 (tables,
 * rights) by `schema`. D4.. (relays and messages) are not looked for here at all: `no-relay`,
 * `shard-unowned`, `broker-away`, `topic-resting`, `failed`, `oldest-due` and `suspension` tell
 * them.
 */
const TOLD_BY_OTHERS: readonly string[] = ["D101", "D102", "D103", "D108"];

/**
 * All findings of one id: what changes with each look, such as a thread's number, is no identity.
 */
export interface Finding extends Pick<Diagnosis, "id" | "what" | "why"> {
  readonly severity: "warning" | "critical";
  readonly count: number;
}

export interface DoctorMemory {
  /** By the lifecycle's clock. */
  readonly lookedMs: number;
  readonly found: readonly Finding[];
}

export interface DoctorLookOptions {
  readonly name: string;
  readonly database: Pick<Database, "doctor">;
  readonly layout: TableLayout;
  readonly rules: Rules;
  readonly logger: Logger;
}

/**
 * What is known now. Reads settings, catalogs and the highest id over a connection of its own;
 * counts no messages and explains no statement.
 */
export async function lookByDoctor(
  { database, layout, logger, name, rules }: DoctorLookOptions,
  before: DoctorMemory | null,
  clockMs: number,
): Promise<DoctorMemory | null> {
  if (rules.doctor === undefined) return null;
  if (before !== null && clockMs - before.lookedMs < EVERY_MS) return before;
  const { found, server } = await database.doctor({ layout }).look();
  if (server === undefined) {
    // The other looks have their connections, or the rule `database` tells.
    logger.warn("the doctor could not connect", { source: name, error: found[0]?.what });
    return { lookedMs: clockMs, found: before?.found ?? [] };
  }
  return { lookedMs: clockMs, found: findingsOf(found, rules.doctor.except ?? []) };
}

/** The gravest of an id speaks for all of them. */
function findingsOf(found: readonly Diagnosis[], except: readonly string[]): Finding[] {
  const isMeant = ({ id, severity }: Diagnosis): boolean =>
    severity !== "note" && !TOLD_BY_OTHERS.includes(id) && !except.includes(id);
  const meant = found.filter(isMeant);
  return [...new Set(meant.map(({ id }) => id))].flatMap((id) => {
    const all = meant.filter((each) => each.id === id);
    const worst = all.find(({ severity }) => severity === "error") ?? all[0];
    if (worst === undefined) return [];
    const severity = worst.severity === "error" ? "critical" : "warning";
    const texts = { what: worst.what.slice(0, TEXT_LENGTH), why: worst.why.slice(0, TEXT_LENGTH) };
    return [{ id, severity, ...texts, count: all.length }];
  });
}

/** One for each finding. */
export function doctorConditions({ found }: DoctorMemory): Condition[] {
  return found.map(({ count, id, severity, what, why }) => ({
    ...{ rule: "doctor", subject: id, severity, value: count, facts: { what, why, count } },
  }));
}
