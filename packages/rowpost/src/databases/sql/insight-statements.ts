/**
 * What a dialect supplies for looking at messages. Each statement reads a bounded number of rows,
 * whatever the size of the table, but for `countByState`, which a person has to ask for.
 */

import type { MessageState } from "../../message/states.ts";
import type { MessageFilter } from "../../outbox/message-admin.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { TableLayout } from "./layout.ts";
import type { Row } from "./rows.ts";
import type { UnconfirmedStatements } from "./unconfirmed-statements.ts";

/**
 * Gauges and bounded counts look at so many rows of a state: with more, a count means "at least".
 */
export const COUNTED_ROWS = 10_000;

/** Message ids from `lowId` to `highId`, both included; undefined = no bound on that side. */
export interface IdRange {
  readonly lowId?: string | undefined;
  readonly highId?: string | undefined;
}

/** A filter whose key has been given its types. */
export interface MessageMatch extends Omit<MessageFilter, "type"> {
  readonly types?: readonly string[] | undefined;
}

/** Ids of messages that match. */
export interface FindRequest extends IdRange {
  readonly match: MessageMatch;
  readonly archived: boolean;
  readonly newestFirst: boolean;
  readonly limit: number;
  /**
   * `ids`: along the primary key, for a range that the caller has bounded. `states`: by the index
   * on the state, for states with few rows. `names`: by ids or keys that the match names. `keys`:
   * by the index on the ordering key of unfinished rows, in the order of ids.
   */
  readonly along: "ids" | "states" | "names" | "keys";
}

/** How many keys begin like this? */
export interface KeyCount {
  readonly types: readonly string[];
  readonly keyPrefix: string;
  readonly archived: boolean;
  readonly limit: number;
}

export interface InsightStatements extends UnconfirmedStatements {
  /**
   * Aliases: id lock_version, of the archive also archived_at as text. In the order of ids, and
   * rows of one id in that of archived_at.
   */
  find(request: FindRequest): Statement;
  /**
   * The aliases of {@link MessageSummary} in snake_case, `state` raw; with `bodies` also
   * message_body and headers, of the archive also archived_at as `find` gives it. In any order.
   */
  readMessages(request: {
    readonly ids: readonly string[];
    readonly archived: boolean;
    readonly bodies: boolean;
  }): Statement;
  /**
   * Alias: id, of the last of so many rows in this direction; no row when there are fewer. Walks
   * the primary key.
   */
  chunkEnd(
    request: IdRange & { readonly archived: boolean; readonly newestFirst: boolean; readonly rows: number },
  ): Statement;
  /** Alias: message_type, the next one behind this; NULL for none. One look into the unique key. */
  nextType(request: { readonly archived: boolean; readonly after: string }): Statement;
  /** Aliases: first_id last_id, NULL in an empty table. */
  idBounds(request: { readonly archived: boolean }): Statement;
  /**
   * Aliases: id gmt_create, of the first row from each of these ids on, where there is one; of the
   * archive the first two, which may have the same id.
   */
  createdFrom(request: { readonly archived: boolean; readonly ids: readonly string[] }): Statement;
  /** Aliases: id gmt_create, of the rows that were archived last. */
  createdOfLastArchived(limit: number): Statement;
  /**
   * Alias: count, of messages of these types whose key begins so; at most `limit` of each type.
   * Reads the index on type and key.
   */
  countKeys(request: KeyCount): Statement;
  /**
   * Aliases: state count. At most about `limit` of each; a state may come in several rows. With
   * `toSort` only those that a page of these states has to sort, where an index has the others in
   * the order of ids.
   */
  countStates(request: {
    readonly states: readonly MessageState[];
    readonly limit: number;
    readonly toSort?: boolean;
  }): Statement;
  /** Aliases: topic state count oldest_age_ms, over all states. Reads the whole table. */
  countByState(): Statement;
  /**
   * Aliases: shard, clock (the database's, ISO text), due_in_ms, deliver_in_ms (NULL: no such
   * time).
   */
  placeOf(id: string): Statement;
  /**
   * Aliases: kind count next_in_ms, of pending messages: `due`, `backoff`, `delayed` or `behind`;
   * at most about `limit` of each; a kind may come in several rows.
   */
  countWaiting(limit: number): Statement;
  /**
   * Aliases: made_at (ISO text) author action reason ids. The newest `limit` changes by hand that
   * may have changed this message: `ids` says whether they have.
   */
  readChanges(request: { readonly id: string; readonly limit: number }): Statement;
  /** Aliases: id topic waiting_ms. At most two rows: the first without a time, the first due. */
  oldestDue(): Statement;
}

/** What the reads of operators are made of. */
export interface InsightParts {
  readonly layout: TableLayout;
  readonly statements: { readonly admin: InsightStatements };
  readonly read: (statement: Statement) => Promise<readonly Row[]>;
}
