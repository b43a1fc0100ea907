import type { MessageFilter } from "../../../admin/message-admin.ts";
import type { Statement } from "../../../transactions/executor.ts";
import type { Cold } from "../cold.ts";
import type { Row } from "../rows.ts";

/** Rows of a state that gauges and bounded counts read: beyond it, a count means "at least". */
export const COUNTED_ROWS = 10_000;

export type Read = (statement: Cold | Statement) => Promise<readonly Row[]>;

/** Message ids from `lowId` to `highId`, inclusive; undefined = unbounded. */
export interface IdRange {
  readonly lowId?: string | undefined;
  readonly highId?: string | undefined;
}

/** A filter whose key has its types. */
export interface MessageMatch extends Omit<MessageFilter, "type"> {
  readonly types?: readonly string[] | undefined;
}

export interface FindRequest extends IdRange {
  readonly match: MessageMatch;
  readonly archived: boolean;
  readonly newestFirst: boolean;
  readonly limit: number;
  /**
   * `ids`: along the primary key, for a bounded range. `states`: by the state index, for states
   * with few rows. `names`: by the match's ids or keys. `keys`: by the index on ordering keys of
   * unfinished rows, in id order.
   */
  readonly along: "ids" | "states" | "names" | "keys";
}

export interface KeyCount {
  readonly types: readonly string[];
  readonly keyPrefix: string;
  readonly archived: boolean;
  readonly limit: number;
}
