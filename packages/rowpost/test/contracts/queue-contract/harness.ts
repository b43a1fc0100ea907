/** What somebody who runs the queue contract on a database has to bring. */
import type { Database } from "../../../src/databases/database.ts";
import type { QueueRooms } from "../../../src/queue/rooms.ts";
import type { QueueStore } from "../../../src/queue/store.ts";

/** Facts of the engine. */
export interface QueueStoreFeatures {
  /**
   * A statement waits for the rows that another connection has locked, and for those only. SQLite
   * has one lock for all, and says `false`.
   */
  readonly rowLocks: boolean;
}

/** One database, ready to be put to the contract. */
export interface QueueStoreHarness {
  /** For titles and skip notes, such as `mariadb`. */
  readonly name: string;
  /** What the database can do. */
  readonly features: QueueStoreFeatures;
  /**
   * A Database object on the one empty database of this harness. Called twice, for two instances
   * that share nothing but the database; the suite makes the queue's tables, and closes both. May
   * return the same object twice where only one is possible (SQLite in memory).
   */
  createDatabase(): Database | Promise<Database>;
  /** Instead of the library's own, where it is the suite that is tried. */
  rooms?(instance: { readonly database: Database; readonly store: QueueStore }): QueueRooms;
  /** How long a case may take. Default 20,000. */
  readonly caseTimeoutMs?: number | undefined;
  /** Ends what the harness started, and drops the database. */
  close?(): Promise<void>;
}

/** What a case cannot do without: a feature, or two `instances`. */
export type QueueStoreNeed = keyof QueueStoreFeatures | "instances";

const REASONS: Readonly<Record<QueueStoreNeed, string>> = {
  rowLocks: "the engine has no row locks that could be waited for",
  instances: "only one instance can open this database",
};

/** Why the need is not met; undefined when it is. */
export function unmetQueueNeed(
  need: QueueStoreNeed,
  { features }: Pick<QueueStoreHarness, "features">,
  facts: { readonly sharedDatabase: boolean },
): string | undefined {
  const isMet = need === "instances" ? !facts.sharedDatabase : features[need];
  return isMet ? undefined : REASONS[need];
}
