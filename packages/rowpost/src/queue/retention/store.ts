/** Dropping whole months: the port. Types only. */

/** A group that still needs a month. */
export interface NeedingGroup {
  readonly group: string;
  /** Partitions with unread messages of it. */
  readonly partitions: readonly { readonly partition: number; readonly nextId: string }[];
  /** Messages of it that the group gets again. */
  readonly waiting: number;
}

export interface DropRequest {
  readonly topic: string;
  /** Such as 202611. */
  readonly month: number;
  /** Random, of this call. */
  readonly owner: string;
  readonly author: string;
  readonly reason: string;
  /** Also when a group still needs it. */
  readonly force: boolean;
}

/**
 * `begun`: marked, so that nobody rewinds to it any more. Without `isThere` a call that was killed
 * has dropped its messages. `gone`: dropped already.
 */
export type DropBegin =
  | { readonly begun: true; readonly isThere: boolean }
  | { readonly refused: "needed"; readonly groups: readonly NeedingGroup[] }
  | { readonly refused: "not over"; readonly currentMonth: number }
  | { readonly refused: "busy" | "no such month" | "gone" };

/** The database keeps a table. */
export interface DropRefusal {
  /** `in use`: somebody reads it, and was not waited for for long. */
  readonly refused: "in use" | "refused";
  /** Nothing was dropped. */
  readonly isWhole: boolean;
  readonly cause: unknown;
}

export interface MonthCounts {
  readonly messages: number;
  readonly records: number;
}

/** A row as it stands in its table, for an archive. */
export type ArchiveRow = Readonly<Record<string, string | number | null>>;

export interface RetentionStore {
  /** Marks the month as dropped, if no group needs it. */
  begin(request: DropRequest): Promise<DropBegin>;
  /** Still at it; false: somebody else has taken over. */
  touch(request: DropRequest, counts?: MonthCounts, archive?: string): Promise<boolean>;
  count(topic: string, month: number): Promise<MonthCounts>;
  /** All rows, in order, so many at a time. */
  rows(topic: string, month: number, of: "messages" | "records"): AsyncIterable<readonly ArchiveRow[]>;
  /** Undefined: the tables are gone. A throw leaves open whether they are. */
  drop(topic: string, month: number): Promise<DropRefusal | undefined>;
  /** What the groups would get again of it is removed: how many. */
  finish(request: DropRequest): Promise<{ readonly redeliveries: number }>;
  /** The mark is taken back: the month is as before. */
  takeBack(request: DropRequest): Promise<void>;
  /** Whoever comes next may go on with it at once. */
  release(request: DropRequest): Promise<void>;
  /** True for one caller in so long. */
  elect(topic: string, everyMs: number): Promise<boolean>;
  close(): Promise<void>;
}
