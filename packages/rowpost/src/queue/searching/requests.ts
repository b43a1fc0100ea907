/** What is asked of a search, and what is answered. */

/** A message as a list shows it: without its body. */
export interface FoundMessage {
  readonly id: string;
  readonly partition: number;
  readonly key: string | null;
  readonly type: string | null;
  readonly contentType: string | null;
  readonly headers: string | null;
  readonly orderingKey: string | null;
  /** ISO 8601, in UTC. */
  readonly deliverAt: string | null;
  readonly ip: string | null;
  readonly port: number | null;
  readonly producerGroup: string | null;
}

/** A month whose tables were dropped. */
export interface DroppedMonth {
  /** Such as 202611. */
  readonly month: number;
  /** Messages that it had. */
  readonly messages: number;
  /** Consumption records that it had. */
  readonly records: number;
  /** Redeliveries and dead letters that went with it. */
  readonly redeliveries: number;
  /** Who dropped it. */
  readonly author: string;
  /** Why. */
  readonly reason: string;
  /** When; ISO 8601, in UTC. */
  readonly droppedAt: string;
  /** Files that hold it, where it was archived. */
  readonly archive: string | null;
}

/** What to look for, from the newest to the oldest. */
export interface SearchRequest {
  readonly topic: string;
  /** Ids from here on, with it. */
  readonly fromId: string;
  /** Up to this id, with it. */
  readonly toId: string;
  /** Along the index; undefined: along the primary key. */
  readonly key: string | undefined;
  readonly matches: (message: FoundMessage) => boolean;
  readonly limit: number;
  readonly timeLimitMs: number;
}

export interface SearchResult {
  readonly messages: readonly FoundMessage[];
  /** Messages that were looked at. */
  readonly rows: number;
  readonly stopped: "end" | "limit" | "time";
  /** Everything from here on was searched; undefined: everything was. */
  readonly nextId: string | undefined;
  /** Months that were looked into, the newest first. */
  readonly months: readonly number[];
  /** Those of the range that were dropped. */
  readonly dropped: readonly DroppedMonth[];
  /** Those of the range, since the topic was made, without a table and not logged as dropped. */
  readonly absent: readonly number[];
}

/** Who consumed a message, or tried to: one attempt. */
export interface ConsumptionEntry {
  /** The consumer group. */
  readonly group: string;
  /** Grows with each rewind. */
  readonly round: number;
  /** 1 for the first; 0 for what somebody did by hand. */
  readonly attempt: number;
  /** What came of it. */
  readonly result: "consumed" | "failed" | "dead" | "skipped" | "discarded" | "redelivered" | "unknown";
  /** When; ISO 8601, in UTC. */
  readonly at: string;
  /** How long the handler took. */
  readonly durationMs: number;
  /** Error of a failed attempt. */
  readonly error: string | null;
  /** Address of the consumer. */
  readonly ip: string | null;
  /** Port of the consumer, where it told one. */
  readonly port: number | null;
  /** Id of the member that consumed it. */
  readonly instance: string;
  /** The record is about so many messages, from `firstId` to `lastId`. */
  readonly batch: { readonly firstId: string; readonly lastId: string; readonly messages: number } | undefined;
}

/** Where one group is with a message. */
export interface GroupPlace {
  readonly group: string;
  /** The lowest id of the partition that the group has not finished. */
  readonly nextId: string;
  readonly round: number;
  /** The message in message_redelivery. */
  readonly redelivery:
    | {
        readonly state: "waiting" | "dead" | "set aside";
        readonly attempt: number;
        /** ISO 8601, in UTC; null: when what stands before it in its ordering key is done. */
        readonly nextAttemptAt: string | null;
        readonly failReason: string | null;
      }
    | undefined;
}

export interface MessageDetail {
  readonly message: FoundMessage & { readonly body: string };
  readonly entries: readonly ConsumptionEntry[];
  readonly groups: readonly GroupPlace[];
}
