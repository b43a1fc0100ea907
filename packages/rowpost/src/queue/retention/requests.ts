/** What is asked of the dropping of a month, and what is answered. */

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
