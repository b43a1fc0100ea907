/** Examines everything that may keep messages from going out, with remedies. */
import type { Database, TableLayout } from "../../databases/database.ts";
import { diagnose } from "../../message/diagnoses/diagnosis.ts";
import { checkOptions, databaseWith, type OptionKinds } from "../../runtime/check-options.ts";
import { describeError } from "../../runtime/errors.ts";
import type { Diagnosis, Severity } from "./diagnosis.ts";
import { judgeWork } from "./work.ts";

/** Options of {@link examine}. */
export interface ExamineOptions {
  /** Database of the message table. */
  readonly database: Database;
  /** Default: the layout of `rowpost migrate`. */
  readonly layout?: TableLayout | undefined;
}

/** Result of {@link examine}. */
export interface Examination {
  /** Product and version; undefined: unreachable. */
  readonly server: string | undefined;
  /** Most severe first; empty when all is well. */
  readonly found: readonly Diagnosis[];
}

const KINDS: OptionKinds<ExamineOptions> = { database: databaseWith("doctor"), layout: "object" };

/**
 * Examines a database and its message table: rights, tables and indexes, settings that could lose
 * messages, other activity there, relays, brokers as the relays see them, and waiting messages.
 * Writes and locks nothing; reports what it may not read.
 *
 * Resolves also when the database is unreachable, which is a finding. Throws `ConfigurationError`
 * for invalid options.
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

/** Most severe first; equal ones by id. */
function sorted(found: readonly Diagnosis[]): Diagnosis[] {
  const rank = ({ severity }: Diagnosis): number => ORDER.indexOf(severity);
  return [...found].sort((left, right) => rank(left) - rank(right) || (left.id < right.id ? -1 : 1));
}
