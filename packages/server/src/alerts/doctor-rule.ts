/** Findings of the doctor about the database as alerts, checked every ten minutes. */
import type { Database, Logger, TableLayout } from "rowpost";
import type { Diagnosis } from "rowpost/admin";
import type { Condition, Rules } from "./rules.ts";

const EVERY_MS = 600_000;
const TEXT_LENGTH = 300;

/**
 * Covered by other rules: D101 and D108 (unreachable) by `database`, D102 and D103 (tables, rights)
 * by `schema`. D4.. (relays and messages) are not checked here: `no-relay`, `shard-unowned`,
 * `broker-away`, `topic-resting`, `failed`, `oldest-due` and `suspension` cover them.
 */
const TOLD_BY_OTHERS: readonly string[] = ["D101", "D102", "D103", "D108"];

export interface DoctorLookOptions {
  readonly name: string;
  readonly database: Pick<Database, "doctor">;
  readonly layout: TableLayout;
  readonly rules: Rules;
  readonly logger: Logger;
  readonly monotonicMs: () => number;
}

/**
 * Reads settings, catalogs and the highest id over its own connection. Counts no messages and
 * explains no statement.
 */
export function createDoctorLook(options: DoctorLookOptions): () => Promise<readonly Condition[]> {
  const { database, layout, logger, monotonicMs, name, rules } = options;
  let conditions: readonly Condition[] = [];
  let dueMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (rules.doctor === undefined || monotonicMs() < dueMs) return conditions;
    const { found, server } = await database.doctor({ layout }).look();
    dueMs = monotonicMs() + EVERY_MS;
    // The other looks have their connections, or the rule `database` fires.
    if (server === undefined) logger.warn("the doctor could not connect", { source: name, error: found[0]?.what });
    else conditions = conditionsOf(found, rules.doctor.except ?? []);
    return conditions;
  };
}

/** Groups findings by id, because varying parts such as a thread's number are no identity. */
function conditionsOf(found: readonly Diagnosis[], except: readonly string[]): Condition[] {
  const isMeant = ({ id, severity }: Diagnosis): boolean =>
    severity !== "note" && !TOLD_BY_OTHERS.includes(id) && !except.includes(id);
  const meant = found.filter(isMeant);
  return [...new Set(meant.map(({ id }) => id))].flatMap((id) => {
    const all = meant.filter((each) => each.id === id);
    // The gravest stands for all.
    const worst = all.find(({ severity }) => severity === "error") ?? all[0];
    if (worst === undefined) return [];
    const severity = worst.severity === "error" ? "critical" : "warning";
    const cut = (text: string): string => text.slice(0, TEXT_LENGTH);
    const facts = {
      what: cut(worst.what),
      why: cut(worst.why),
      whatZh: cut(worst.zh.what),
      whyZh: cut(worst.zh.why),
      count: all.length,
    };
    return [{ rule: "doctor", subject: id, severity, value: all.length, facts }];
  });
}
