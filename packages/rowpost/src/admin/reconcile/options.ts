/** What reconciling is asked for, and what stands in for what is left out. */
import type { Database, TableLayout } from "../../databases/database.ts";
import { checkOptions, databaseWith, LAYOUT, type OptionKinds, refuseUnknown } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { Finding } from "./finding.ts";

/** The consumer's table of what it has handled. */
export interface ReconcileInbox {
  /** Where it is. Default: the producer's database. */
  readonly database?: Database | undefined;
  /** Default `message_inbox`. */
  readonly table?: string | undefined;
  /** Database (MySQL), schema (PostgreSQL) or attached database (SQLite) of the table. */
  readonly schema?: string | undefined;
  /** Only what this consumer has handled. Default: all. */
  readonly consumer?: string | undefined;
}

/** The consumer's own effects. */
export interface ReconcileEffects {
  /** Where they are. Default: that of the inbox, else the producer's. */
  readonly database?: Database | undefined;
  /** A SELECT with one row for each effect, written as {@link ReconcileOptions.businessQuery}. */
  readonly query: string;
}

/** How far it is. */
export interface ReconcileProgress {
  /** Rows of the business query. */
  readonly businessRows: number;
  /** Messages that were looked at. */
  readonly messages: number;
  /** Rows of the inbox. */
  readonly handlings: number;
}

/** Options of {@link reconcile}. */
export interface ReconcileOptions {
  /** The producer's: where the business rows and the message table are. */
  readonly database: Database;
  /** Of the message table. Default: that of a table that `rowpost migrate` makes. */
  readonly layout?: TableLayout | undefined;
  /**
   * Message types that are compared. Needed with `businessQuery`: a message of another type has its
   * business row elsewhere. Default: all.
   */
  readonly types?: readonly string[] | undefined;
  /**
   * One SELECT that returns `message_key` of each business row that must have a message, and
   * `message_type` when `types` are several. `:from` and `:to` in it are the window:
   * `… WHERE paid_at >= :from AND paid_at < :to`. It is run in a transaction that can only read.
   * Absent: business rows are not compared.
   */
  readonly businessQuery?: string | undefined;
  /** IANA zone, such as `Asia/Shanghai`, of wall-clock columns that `:from` and `:to` are compared
   * with. Default: the clock of the message table (UTC; of the seeds' layouts the server's own). */
  readonly timeZone?: string | undefined;
  /** Beginning of the window. Default: a day before `to`. */
  readonly from?: Date | undefined;
  /** Its end, not included. Default: `slackMs` ago, so that nothing in flight is told. */
  readonly to?: Date | undefined;
  /**
   * How far the time of a business row and that of its message may be apart, and how long ago a
   * deadline has to be, in milliseconds. Default 10 minutes.
   */
  readonly slackMs?: number | undefined;
  /**
   * How long finished messages are kept, in the table and its archive together, in milliseconds; 0:
   * they are deleted when they are sent. Business rows before that are not compared. Default: told
   * by the oldest finished message that is there.
   */
  readonly keptForMs?: number | undefined;
  /** Compare what consumers have handled with the producer's messages. Default: not. */
  readonly inbox?: ReconcileInbox | undefined;
  /** Look for effects that are there twice. Default: not. */
  readonly effects?: ReconcileEffects | undefined;
  /** Told of each finding, one after another; what it returns is waited for. */
  readonly onFinding: (finding: Finding) => void | Promise<void>;
  /** Told from time to time. */
  readonly onProgress?: ((progress: ReconcileProgress) => void) | undefined;
}

/** With nothing left out. */
export interface Settings extends Omit<ReconcileOptions, "layout" | "slackMs"> {
  readonly layout: TableLayout;
  readonly slackMs: number;
}

const DEFAULT_SLACK_MS = 600_000;
const KINDS: OptionKinds<ReconcileOptions> = {
  database: databaseWith("reconcileStore"),
  layout: LAYOUT,
  types: "array",
  businessQuery: "string",
  timeZone: "string",
  from: "object",
  to: "object",
  slackMs: "number",
  keptForMs: "number",
  inbox: "object",
  effects: "object",
  onFinding: "function",
  onProgress: "function",
};

/** Throws `ConfigurationError` for what cannot be. */
export function settingsOf(options: ReconcileOptions): Settings {
  checkOptions("reconcile", options, KINDS);
  const { businessQuery, effects, from, inbox, keptForMs, layout, onFinding, slackMs = DEFAULT_SLACK_MS, to } = options;
  const types = options.types?.length === 0 ? undefined : options.types;
  if (typeof onFinding !== "function") throw new ConfigurationError("reconcile takes { onFinding }, a function");
  if (inbox !== undefined) refuseUnknown("reconcile, inbox", inbox, ["database", "table", "schema", "consumer"]);
  if (effects !== undefined) refuseUnknown("reconcile, effects", effects, ["database", "query"]);
  if (businessQuery !== undefined && types === undefined) {
    throw new ConfigurationError(
      "reconcile: businessQuery needs types: the message types whose business rows it returns",
    );
  }
  for (const [name, value] of Object.entries({ slackMs, keptForMs })) {
    if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) continue;
    throw new ConfigurationError(`reconcile: ${name} is ${value}; it must be a whole number of milliseconds`);
  }
  for (const [name, value] of Object.entries({ from, to })) {
    if (value === undefined || (value instanceof Date && !Number.isNaN(value.getTime()))) continue;
    throw new ConfigurationError(`reconcile: ${name} must be a Date`);
  }
  return { ...options, types, slackMs, layout: layout ?? options.database.defaultLayout };
}
