/** Looks at everything that keeps messages from going out, and says what mends it. */
import type { Database, TableLayout } from "../../databases/database.ts";
import { diagnose } from "../../message/diagnoses/diagnosis.ts";
import { checkOptions, databaseWith, type OptionKinds } from "../../runtime/check-options.ts";
import { describeError } from "../../runtime/errors.ts";
import type { Diagnosis, Severity } from "./diagnosis.ts";
import { judgeWork } from "./work.ts";

/** Options of {@link examine}. */
export interface ExamineOptions {
  /** Where the message table is. */
  readonly database: Database;
  /** Default: that of a table which `rowpost migrate` makes. */
  readonly layout?: TableLayout | undefined;
}

/** What {@link examine} came to. */
export interface Examination {
  /** Product and version; undefined: it could not be reached. */
  readonly server: string | undefined;
  /** The gravest first. Empty: nothing was found. */
  readonly found: readonly Diagnosis[];
}

const KINDS: OptionKinds<ExamineOptions> = { database: databaseWith("doctor"), layout: "object" };

/**
 * Examines a database and its message table: rights, tables and indexes, settings under which
 * messages could be lost, what else goes on there, relays, brokers as the relays see them, and
 * messages that wait. It writes nothing and locks nothing; what it may not look at, it says.
 *
 * Resolves also when the database cannot be reached, which is a finding. Throws
 * `ConfigurationError` for options that fit nothing.
 */
export async function examine(options: ExamineOptions): Promise<Examination> {
  checkOptions("examine", options, KINDS);
  const { database, layout = database.defaultLayout } = options;
  const { found, isReadable, server } = await database.doctor({ layout }).look();
  const work = isReadable ? await lookAtWork(database, layout) : [];
  return { server, found: sorted([...found, ...work]) };
}

async function lookAtWork(database: Database, layout: TableLayout): Promise<readonly Diagnosis[]> {
  const admin = database.messageAdmin({ layout });
  try {
    return judgeWork(await admin.status());
  } catch (error) {
    return [diagnose("not-counted", { error: describeError(error) })];
  } finally {
    await admin.close();
  }
}

const ORDER: readonly Severity[] = ["error", "warning", "note"];

/** The gravest first; those of one severity by their ids. */
function sorted(found: readonly Diagnosis[]): Diagnosis[] {
  const rank = ({ severity }: Diagnosis): number => ORDER.indexOf(severity);
  return [...found].sort((left, right) => rank(left) - rank(right) || (left.id < right.id ? -1 : 1));
}
