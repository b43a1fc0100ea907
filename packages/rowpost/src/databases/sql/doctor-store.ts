/** The doctor on any SQL database: connection, tables, indexes, clock, then the dialect's looks. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import type { DoctorStore, Examined } from "../../admin/doctor/store.ts";
import { diagnose } from "../../message/diagnoses/diagnosis.ts";
import { ConfigurationError, describeError, PermissionError } from "../../runtime/errors.ts";
import type { Session } from "../database.ts";
import { readAbilities } from "./abilities.ts";
import { type CheckedSchema, checkSchema, messageTableProblems } from "./check-schema.ts";
import { spelled } from "./cold.ts";
import type { DoctorLook } from "./doctor-statements.ts";
import { estimate } from "./operations/statements.ts";
import { type PlanReader, readPlans } from "./plans.ts";
import type { StoreParts } from "./relay-store.ts";
import { integer, text } from "./rows.ts";

/** Clocks always differ by some milliseconds. */
const CLOCK_OFF_MS = 2_000;

export function createDoctorStore(
  parts: StoreParts & { readonly looks: readonly DoctorLook[]; readonly plans: PlanReader },
): DoctorStore {
  return {
    plans: () => readPlans(parts),
    async tableProblems() {
      const { layout, statements } = parts;
      const session = await parts.connect({ purpose: "tool", clock: layout.clock });
      try {
        return await messageTableProblems(session, { layout, schema: statements.schema });
      } finally {
        await session.close();
      }
    },
    async look(): Promise<Examined> {
      const found: Diagnosis[] = [];
      const session = await open(parts, found);
      if (session === undefined) return { server: undefined, found, isReadable: false };
      try {
        const server = `${session.server.product} ${session.server.version}`;
        const checked = await lookAtTables(parts, session, found);
        if (checked !== undefined) await lookAtVersions(parts, session, found);
        if (checked !== undefined) await lookAtAbilities(parts, session, checked, found);
        if (checked !== undefined) await lookAtClock(parts, session, found);
        for (const { judge, statement } of parts.looks) {
          // Most looks need the table, and its absence is reported already.
          if (checked === undefined) continue;
          await trying(found, statement.name, async () => found.push(...judge((await session.run(statement)).rows)));
        }
        return { server, found, isReadable: checked !== undefined };
      } finally {
        await session.close();
      }
    },
  };
}

/**
 * Like a relay's lease session: refuses one that a pooler would split, and reports a lock that
 * proves nothing.
 */
async function open(parts: StoreParts, found: Diagnosis[]): Promise<Session | undefined> {
  let session: Session;
  try {
    session = await parts.connect({ purpose: "lease", clock: parts.layout.clock });
  } catch (error) {
    const kind = error instanceof ConfigurationError ? "refused" : "unreachable";
    found.push(diagnose(kind, { error: messageOf(error) }));
    return undefined;
  }
  if (session.lock === undefined) found.push(diagnose("no-session-lock", {}));
  return session;
}

async function lookAtTables(
  { layout, statements }: StoreParts,
  session: Session,
  found: Diagnosis[],
): Promise<CheckedSchema | undefined> {
  try {
    return await checkSchema(session, { layout, schema: statements.schema });
  } catch (error) {
    const kind = error instanceof PermissionError ? "denied" : "unfit";
    found.push(diagnose(kind, { error: messageOf(error) }));
    return undefined;
  }
}

/** Tables of an older version that still fit. */
async function lookAtVersions({ statements }: StoreParts, session: Session, found: Diagnosis[]): Promise<void> {
  const { schema } = statements;
  await trying(found, "migrations", async () => {
    const done = new Set((await session.run(schema.readVersions())).rows.map((row) => integer(row, "version")));
    const newest = schema.migrations.at(-1)?.version ?? 0;
    const missing = schema.migrations.filter(({ version }) => !done.has(version));
    const newer = [...done].filter((version) => version > newest);
    if (missing.length > 0) {
      const migrations = missing.map(({ name, version }) => `${version} ${name}`).join(", ");
      found.push(diagnose("migrations-missing", { migrations }));
    }
    if (newer.length > 0) found.push(diagnose("migrations-newer", { newer: Math.max(...newer), newest }));
  });
}

async function lookAtAbilities(
  { layout, statements }: StoreParts,
  session: Session,
  checked: CheckedSchema,
  found: Diagnosis[],
): Promise<void> {
  await trying(found, "indexes", async () => {
    const { findings, missingIndexes, shiftingZone } = await readAbilities(session, {
      layout,
      schema: statements.schema,
      checked,
    });
    found.push(...(findings ?? []));
    for (const statement of missingIndexes) found.push(diagnose("no-topic-index", { statement }));
    if (shiftingZone !== undefined) found.push(diagnose("shifting-zone", { zone: shiftingZone }));
  });
}

/** Compares with the middle of the round trip. */
async function lookAtClock({ statements }: StoreParts, session: Session, found: Diagnosis[]): Promise<void> {
  await trying(found, "clock", async () => {
    const askedMs = Date.now();
    const [row] = (await session.run(spelled(statements.table.words, estimate(statements.table)))).rows;
    const middleMs = (askedMs + Date.now()) / 2;
    if (row === undefined) return;
    const offMs = Math.round(Date.parse(text(row, "clock")) - middleMs);
    if (Math.abs(offMs) < CLOCK_OFF_MS) return;
    found.push(diagnose(offMs > 0 ? "clock-ahead" : "clock-behind", { off: Math.abs(offMs) }));
  });
}

/** Reports a forbidden look and continues with the others. */
async function trying(found: Diagnosis[], where: string, look: () => Promise<unknown>): Promise<void> {
  try {
    await look();
  } catch (error) {
    found.push(diagnose("not-looked-at", { where, error: describeError(error) }));
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
