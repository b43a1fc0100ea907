/** Options of reconciling and their defaults. */
import type { Database, TableLayout } from "../../databases/database.ts";
import { checkOptions, databaseWith, LAYOUT, type OptionKinds, refuseUnknown } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { Finding } from "./finding.ts";

/** The consumer's inbox table. */
export interface ReconcileInbox {
  /** Its database. Default: the producer's. */
  readonly database?: Database | undefined;
  /** Default `message_inbox`. */
  readonly table?: string | undefined;
  /** Database (MySQL), schema (PostgreSQL) or attached database (SQLite) of the table. */
  readonly schema?: string | undefined;
  /** Only this consumer. Default: all. */
  readonly consumer?: string | undefined;
}

/** The consumer's own effects. */
export interface ReconcileEffects {
  /** Their database. Default: the inbox's, else the producer's. */
  readonly database?: Database | undefined;
  /** A SELECT with one row per effect, like {@link ReconcileOptions.businessQuery}. */
  readonly query: string;
}

/** Progress of reconciling. */
export interface ReconcileProgress {
  /** Rows of the business query. */
  readonly businessRows: number;
  /** Messages examined. */
  readonly messages: number;
  /** Rows of the inbox. */
  readonly handlings: number;
}

/** Options of {@link reconcile}. */
export interface ReconcileOptions {
  /** The producer's database, with business rows and the message table. */
  readonly database: Database;
  /** Layout of the message table. Default: that of `rowpost migrate`. */
  readonly layout?: TableLayout | undefined;
  /**
   * Message types to compare. Required with `businessQuery`, since messages of other types have
   * their business rows elsewhere. Default: all.
   */
  readonly types?: readonly string[] | undefined;
  /**
   * One SELECT that returns `message_key` of each business row that must have a message, and
   * `message_type` with several `types`. `:from` and `:to` in it are the window: `… WHERE paid_at
   * >= :from AND paid_at < :to`. Runs in a read-only transaction. Default: business rows are not
   * compared.
   */
  readonly businessQuery?: string | undefined;
  /**
   * IANA zone, such as `Asia/Shanghai`, of wall-clock columns compared with `:from` and `:to`.
   * Default: the clock of the message table (UTC; the server's own for the `t_local_message`
   * layouts).
   */
  readonly timeZone?: string | undefined;
  /** Start of the window. Default: a day before `to`. */
  readonly from?: Date | undefined;
  /**
   * End of the window, exclusive. Default: `slackMs` ago, so that messages in flight are not
   * reported.
   */
  readonly to?: Date | undefined;
  /**
   * Largest difference between the times of a business row and its message, and the age of a missed
   * deadline before it is reported, in ms. Default 10 minutes.
   */
  readonly slackMs?: number | undefined;
  /**
   * How long finished messages are kept, in table and archive together, in ms; 0: deleted when
   * sent. Older business rows are not compared. Default: from the oldest finished message.
   */
  readonly keptForMs?: number | undefined;
  /** Compares messages handled by consumers with the producer's. Default: off. */
  readonly inbox?: ReconcileInbox | undefined;
  /** Looks for repeated effects. Default: off. */
  readonly effects?: ReconcileEffects | undefined;
  /** Called for each finding in turn; a returned promise is awaited. */
  readonly onFinding: (finding: Finding) => void | Promise<void>;
  /** Called from time to time. */
  readonly onProgress?: ((progress: ReconcileProgress) => void) | undefined;
}

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

/** Throws `ConfigurationError` for invalid options. */
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
