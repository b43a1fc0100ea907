/** Looking for messages that a group has passed without a record: the port. Types only. */

/** How far a group is in a partition. */
export interface VerifiedGroup {
  readonly group: string;
  readonly partition: number;
  /** Where it began. */
  readonly beginId: string;
  readonly nextId: string;
  readonly round: number;
}

/** A record at a message: of itself, or of a batch that begins with it. */
export interface VerifiedRecord {
  readonly round: number;
  readonly batch: { readonly lastId: string; readonly messages: number } | undefined;
}

export interface VerifiedMessage {
  readonly id: string;
  readonly records: readonly VerifiedRecord[];
  /** It comes again, or is a dead letter. */
  readonly again: boolean;
}

export interface VerifyChunk {
  readonly topic: string;
  readonly group: string;
  readonly month: number;
  readonly partition: number;
  /** From here on, with it. */
  readonly fromId: string;
  /** Up to here, with it. */
  readonly toId: string;
  readonly limit: number;
}

export interface VerifyStore {
  groups(topic: string): Promise<VerifiedGroup[]>;
  /** Months with tables that are not being dropped, in order. */
  months(topic: string): Promise<number[]>;
  /** The message so many places before; undefined: there are fewer in this month. */
  before(
    request: Omit<VerifyChunk, "group" | "limit" | "toId"> & { readonly places: number },
  ): Promise<string | undefined>;
  /** In order of the ids. */
  chunk(request: VerifyChunk): Promise<VerifiedMessage[]>;
  close(): Promise<void>;
}
