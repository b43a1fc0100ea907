/** A group that still needs a month. */
export interface NeedingGroup {
  readonly group: string;
  /** Partitions with unread messages of it. */
  readonly partitions: readonly { readonly partition: number; readonly nextId: string }[];
  /** Redeliveries of the group in it. */
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
  /** Even when a group still needs it. */
  readonly force: boolean;
}

/**
 * `begun`: marked. Without `isThere` a killed call has already dropped its messages. `gone`:
 * dropped already.
 */
export type DropBegin =
  | { readonly begun: true; readonly isThere: boolean }
  | { readonly refused: "needed"; readonly groups: readonly NeedingGroup[] }
  | { readonly refused: "not over"; readonly currentMonth: number }
  | { readonly refused: "busy" | "no such month" | "gone" };

/** The database refused to drop a table. */
export interface DropRefusal {
  /** `in use`: by a reader. */
  readonly refused: "in use" | "refused";
  /** Nothing was dropped. */
  readonly isWhole: boolean;
  readonly cause: unknown;
}

export interface MonthCounts {
  readonly messages: number;
  readonly records: number;
}

/** A raw row for an archive. */
export type ArchiveRow = Readonly<Record<string, string | number | null>>;
