/** What a dialect supplies for looking into the queue. All of them only read. */
import type { Statement } from "../../../transactions/executor.ts";

export interface KeySearchRequest {
  readonly topic: string;
  readonly month: number;
  readonly key: string;
  readonly fromId: string;
  readonly toId: string;
  readonly limit: number;
}

export interface WalkRequest {
  readonly topic: string;
  readonly month: number;
  readonly partitions: number;
  readonly fromId: string;
  readonly toId: string;
  /** Of each partition. */
  readonly limit: number;
}

/**
 * Aliases of a message: id partition_no message_key message_type content_type headers ordering_key
 * deliver_at ip port producer_group.
 */
export interface SearchStatements {
  /** Aliases: partitions created (ISO 8601). */
  readTopic(topic: string): Statement;
  /** Aliases: month owner messages records redeliveries author reason dropped_at archive. */
  droppedMonths(topic: string): Statement;
  /** Messages with this key, the newest first, along the index on (message_key, message_id). */
  searchKey(request: KeySearchRequest): Statement;
  /** The newest of each partition, along the primary key; in no order among the partitions. */
  walk(request: WalkRequest): Statement;
  /** A message, and its message_data. */
  readMessage(request: { readonly topic: string; readonly month: number; readonly id: string }): Statement;
  /**
   * Records of a message, and of batches from `fromId` on that hold it. Aliases: id group_id round
   * attempt last_id messages ip port instance consumed_at result duration_ms error.
   */
  readRecords(request: {
    readonly topic: string;
    readonly month: number;
    readonly id: string;
    readonly fromId: string;
  }): Statement;
  /**
   * Every group's place in the partition of this message. Aliases: group_id next_id round state
   * attempt next_attempt_at fail_reason.
   */
  readPlaces(topic: string, id: string): Statement;
}
