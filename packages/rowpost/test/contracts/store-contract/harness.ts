/**
 * What somebody who runs the store contract on a database has to bring: an empty database, a
 * layout, and the facts of the engine that decide which cases apply.
 */
import type { Database, TableLayout } from "../../../src/databases/database.ts";

/** Facts of the engine and of the table. */
export interface StoreFeatures {
  /**
   * A statement waits for the rows that another connection has locked, and for those only. SQLite
   * has one lock for all, and says `false`.
   */
  readonly rowLocks: boolean;
  /**
   * Type and key that differ in case, accents or trailing blanks are two messages. A table made by
   * somebody else's DDL may fold them (rule: exact-bytes).
   */
  readonly comparesBytes: boolean;
  /** retry_count and lock_version may be NULL, which counts as 0. */
  readonly nullableCounts: boolean;
  /** An enqueue in one instance rings the doorbell of another that listens. */
  readonly notifies: boolean;
  /** A relay may run without a sending mark (`sendingMark: "off"`). */
  readonly runsUnmarked: boolean;
  /** A value that is no state can be written into the state column by hand. */
  readonly takesUnknownStates: boolean;
}

/** A user's own connection, as {@link Database.executor} takes it. */
export interface UserHandle {
  /** What a user would pass to `enqueue`. */
  readonly handle: unknown;
  /** Gives it back. */
  close(): Promise<void>;
}

/** One database with one layout, ready to be put to the contract. */
export interface StoreHarness {
  /** For titles and skip notes, such as `mariadb, t_local_message`. */
  readonly name: string;
  /** The table that the suite migrates, uses and empties. */
  readonly layout: TableLayout;
  /** What the database can do. */
  readonly features: StoreFeatures;
  /**
   * A Database object on the one empty database of this harness. Called twice, for two instances
   * that share nothing but the database; the suite closes both. May return the same object twice
   * where only one is possible (SQLite in memory).
   */
  createDatabase(): Database | Promise<Database>;
  /** A connection of a driver of the user's own, in no transaction. */
  readonly createUserHandle?: (() => UserHandle | Promise<UserHandle>) | undefined;
  /** How long a case may take. Default 20,000. */
  readonly caseTimeoutMs?: number | undefined;
  /** Ends what the harness started, and drops the database. */
  close?(): Promise<void>;
}

/** Columns that a layout may lack. */
type OptionalColumn =
  | "headers"
  | "contentType"
  | "orderingKey"
  | "deliveryCount"
  | "deliverAt"
  | "messageId"
  | "lockVersion"
  | "sentAt"
  | "consumedAt"
  | "lastRetryAt";

/**
 * What a case cannot do without: a feature, a column, `claimToken` (a column that only grows with
 * each claim), several `shards`, two `instances`.
 */
export type StoreNeed =
  | keyof StoreFeatures
  | OptionalColumn
  | "noClaimToken"
  | "claimToken"
  | "foldsIdentities"
  | "noDeliverAt"
  | "noHeaders"
  | "milliseconds"
  | "wholeSeconds"
  | "userHandle"
  | "shards"
  | "instances";

/** What is known once the database is open. */
export interface OpenedFacts {
  readonly shardCount: number;
  readonly sharedDatabase: boolean;
}

const FEATURE_REASONS: Readonly<Record<keyof StoreFeatures, string>> = {
  rowLocks: "the engine has no row locks that could be waited for",
  comparesBytes: "the table's collation folds different identities into one",
  nullableCounts: "retry_count and lock_version cannot be NULL",
  runsUnmarked: "without the mark this engine is slower, so it is refused",
  notifies: "the engine cannot notify another process",
  takesUnknownStates: "the table takes no value that is no state",
};

/** Why the need is not met; undefined when it is. */
export function unmetStoreNeed(need: StoreNeed, harness: StoreHarness, facts: OpenedFacts): string | undefined {
  const { features, layout } = harness;
  const { columns } = layout;
  const unless = (met: boolean, reason: string): string | undefined => (met ? undefined : reason);
  const hasToken = columns.lockVersion !== undefined;
  switch (need) {
    case "rowLocks":
    case "comparesBytes":
    case "nullableCounts":
    case "notifies":
    case "runsUnmarked":
    case "takesUnknownStates":
      return unless(features[need], FEATURE_REASONS[need]);
    case "claimToken":
      return unless(hasToken, "the layout has no lock_version");
    case "noClaimToken":
      return unless(!hasToken, "the layout has a claim token");
    case "foldsIdentities":
      return unless(!features.comparesBytes, "the table compares identities byte for byte");
    case "noDeliverAt":
      return unless(columns.deliverAt === undefined, "the layout has deliver_at");
    case "noHeaders":
      return unless(columns.headers === undefined, "the layout has a column for headers");
    case "milliseconds":
      return unless(layout.fractionDigits === 3, "the layout's instants are whole seconds");
    case "wholeSeconds":
      return unless(layout.fractionDigits === 0, "the layout's instants have milliseconds");
    case "userHandle":
      return unless(harness.createUserHandle !== undefined, "there is no user's connection (no `createUserHandle`)");
    case "shards":
      return unless(facts.shardCount > 1, "the engine has one shard");
    case "instances":
      return unless(!facts.sharedDatabase, "only one instance can open this database");
    default:
      return unless(columns[need] !== undefined, `the layout has no column for ${need}`);
  }
}
