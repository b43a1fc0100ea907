/** A message in a list, without its body. */
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
  /** Month such as 202611. */
  readonly month: number;
  /** Number of its messages. */
  readonly messages: number;
  /** Number of its consumption records. */
  readonly records: number;
  /** Redeliveries and dead letters deleted with it. */
  readonly redeliveries: number;
  /** Who dropped it. */
  readonly author: string;
  /** Why. */
  readonly reason: string;
  /** When; ISO 8601, in UTC. */
  readonly droppedAt: string;
  /** Files of its archive, if any. */
  readonly archive: string | null;
}

/** Searched from newest to oldest. */
export interface SearchRequest {
  readonly topic: string;
  /** First id, inclusive. */
  readonly fromId: string;
  /** Last id, inclusive. */
  readonly toId: string;
  /** Searches the key's index; undefined: the primary key. */
  readonly key: string | undefined;
  readonly matches: (message: FoundMessage) => boolean;
  readonly limit: number;
  readonly timeLimitMs: number;
}

export interface SearchResult {
  readonly messages: readonly FoundMessage[];
  /** Messages examined. */
  readonly rows: number;
  readonly stopped: "end" | "limit" | "time";
  /** Everything from here on was searched; undefined: the whole range. */
  readonly nextId: string | undefined;
  /** Months searched, newest first. */
  readonly months: readonly number[];
  /** Dropped months of the range. */
  readonly dropped: readonly DroppedMonth[];
  /** Months of the range since the topic was created, without a table and not logged as dropped. */
  readonly absent: readonly number[];
}

/** One attempt to consume a message. */
export interface ConsumptionEntry {
  /** The consumer group. */
  readonly group: string;
  /** Grows with each rewind. */
  readonly round: number;
  /** From 1; 0 for a change by hand. */
  readonly attempt: number;
  /** Outcome of the attempt. */
  readonly result: "consumed" | "failed" | "dead" | "skipped" | "discarded" | "redelivered" | "unknown";
  /** When; ISO 8601, in UTC. */
  readonly at: string;
  /** Run time of the handler. */
  readonly durationMs: number;
  /** Error of a failed attempt. */
  readonly error: string | null;
  /** Address of the consumer. */
  readonly ip: string | null;
  /** Port of the consumer, if known. */
  readonly port: number | null;
  /** Id of the member that consumed it. */
  readonly instance: string;
  /** Set when the record covers this many messages, `firstId` to `lastId`. */
  readonly batch: { readonly firstId: string; readonly lastId: string; readonly messages: number } | undefined;
}

/** Position of one group relative to a message. */
export interface GroupPlace {
  readonly group: string;
  /** The group's lowest unfinished id of the partition. */
  readonly nextId: string;
  readonly round: number;
  /** Its row in message_redelivery. */
  readonly redelivery:
    | {
        readonly state: "waiting" | "dead" | "set aside";
        readonly attempt: number;
        /** ISO 8601, in UTC; null while it waits behind another message of its ordering key. */
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
