/** The doctor on any SQL database: connection, tables, indexes, clock, then the dialect's looks. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import type { DoctorStore, Examined } from "../../admin/doctor/store.ts";
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

/** Clocks differ by some milliseconds everywhere. */
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
          // Without the table most looks have nothing to look at, and that is said already.
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
 * As a relay's lease session: one that a pooler would split is refused here, and a connection whose
 * lock proves nothing is told.
 */
async function open(parts: StoreParts, found: Diagnosis[]): Promise<Session | undefined> {
  let session: Session;
  try {
    session = await parts.connect({ purpose: "lease", clock: parts.layout.clock });
  } catch (error) {
    const isRefused = error instanceof ConfigurationError;
    found.push({
      id: isRefused ? "D108" : "D101",
      severity: "error",
      what: error instanceof Error ? error.message : String(error),
      why: isRefused ? "relays and tools refuse to work over such a connection" : "neither relay nor tools can work",
      mend: isRefused
        ? "give them the address of the server itself, or a file on a disk of this machine"
        : "check address, user, password and network from this machine",
    });
    return undefined;
  }
  if (session.lock === undefined) {
    found.push({
      id: "D207",
      severity: "note",
      what: "a session lock proves nothing here: a cluster, or a proxy, where not every node sees it",
      why: "after the death of a relay its messages wait for the end of its lease (30 s) instead of one second",
      mend: "nothing has to be done; a shorter --lease shortens it",
    });
  }
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
    const isDenied = error instanceof PermissionError;
    found.push({
      id: isDenied ? "D103" : "D102",
      severity: "error",
      what: error instanceof Error ? error.message : String(error),
      why: "relay and tools refuse to start",
      mend: isDenied ? "grant what docs/rights.md lists" : "what it says; rowpost migrate makes what is missing",
    });
    return undefined;
  }
}

/** Tables of an older version, which still fit. */
async function lookAtVersions({ statements }: StoreParts, session: Session, found: Diagnosis[]): Promise<void> {
  const { schema } = statements;
  await trying(found, "migrations", async () => {
    const done = new Set((await session.run(schema.readVersions())).rows.map((row) => integer(row, "version")));
    const newest = schema.migrations.at(-1)?.version ?? 0;
    const missing = schema.migrations.filter(({ version }) => !done.has(version));
    const newer = [...done].filter((version) => version > newest);
    if (missing.length > 0) {
      found.push({
        id: "D104",
        severity: "warning",
        what: `migrations are missing: ${missing.map(({ name, version }) => `${version} ${name}`).join(", ")}`,
        why: "parts of this version of rowpost have no tables",
        mend: "rowpost migrate --database URL (with --print it shows the SQL)",
      });
    }
    if (newer.length > 0) {
      found.push({
        id: "D104",
        severity: "warning",
        what: `the tables have migration ${Math.max(...newer)}; this version of rowpost knows ${newest}`,
        why: "a newer version has made them, and this one cannot update them",
        mend: "use the newer version everywhere",
      });
    }
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
    for (const create of missingIndexes) {
      found.push({
        id: "D105",
        severity: "warning",
        what: "the message table has no index that leads to the waiting messages of one topic",
        why: "a topic that the broker refuses, with many messages, slows the others down",
        mend: create,
      });
    }
    if (shiftingZone !== undefined) {
      found.push({
        id: "D107",
        severity: "warning",
        what: `the instants of the message table are in ${shiftingZone}, which changes its offset within a year`,
        why: "in the hour that comes twice, delays and retries may be an hour off",
        mend: "have the table's programs write UTC, or run the database in UTC",
      });
    }
  });
}

/** By the middle of the round trip. */
async function lookAtClock({ statements }: StoreParts, session: Session, found: Diagnosis[]): Promise<void> {
  await trying(found, "clock", async () => {
    const askedMs = Date.now();
    const [row] = (await session.run(spelled(statements.table.words, estimate(statements.table)))).rows;
    const middleMs = (askedMs + Date.now()) / 2;
    if (row === undefined) return;
    const offMs = Math.round(Date.parse(text(row, "clock")) - middleMs);
    if (Math.abs(offMs) < CLOCK_OFF_MS) return;
    found.push({
      id: "D106",
      severity: "warning",
      what: `the clock of the database is ${Math.abs(offMs)} ms ${offMs > 0 ? "ahead of" : "behind"} that of this machine`,
      why: "rowpost goes by the database's clock alone, but delays that your programs work out by their own are off by that",
      mend: "have both machines' clocks set (NTP)",
    });
  });
}

/** What may not be looked at is said, and keeps nothing else from being looked at. */
async function trying(found: Diagnosis[], what: string, look: () => Promise<unknown>): Promise<void> {
  try {
    await look();
  } catch (error) {
    found.push({
      id: "D100",
      severity: "note",
      what: `${what}: could not be looked at: ${describeError(error)}`,
      why: "what is wrong there stays unknown",
      mend: "grant the right that it names, if you want it looked at",
    });
  }
}
