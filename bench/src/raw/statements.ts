/**
 * The library's own statement builders, so that a raw loop runs exactly the relay's SQL. They are
 * not public: they are loaded at run time from beside the package's entry, and only the ones used
 * are described here.
 */
import type { BareStatement } from "../servers/server.ts";

export interface RowToken {
  readonly id: string;
  readonly shard: number;
  readonly deliveryCount: number;
  readonly lockVersion: string;
  readonly identityHash: string;
}

/** Owner and epochs checked by the statements. */
export interface Fence {
  readonly owner: string;
  readonly epochs: readonly (string | undefined)[];
}

/** What is written for one published message. */
export interface SentOutcome extends RowToken {
  readonly toState: "sent";
  readonly messageId: string;
  readonly retryDelta: 0;
  readonly deliveryDelta: 0;
  readonly nextRetryInMs: null;
  readonly failReason: null;
}

/** A lease row as seen before the takeover. */
export interface ObservedLease {
  readonly shard: number;
  readonly owner: string | undefined;
  readonly epoch: string;
  readonly leaseUntil: string;
  readonly leaseMs: number;
}

export interface EncodedMessage {
  readonly type: string;
  readonly key: string;
  readonly topic: string;
  readonly body: string;
  readonly headers: null;
  readonly contentType: null;
  readonly orderingKey: null;
  readonly delayMs: null;
  readonly deliverAtMs: null;
  readonly createdBy: string;
}

export interface RawStatements {
  readonly enqueue: { insert(messages: readonly EncodedMessage[]): BareStatement };
  readonly leases: {
    ensureShards(): BareStatement;
    readLeases(): BareStatement;
    take(request: { owner: string; leaseMs: number; observed: readonly ObservedLease[] }): BareStatement;
    release(request: { owner: string; shards: readonly { shard: number; epoch: string }[] }): BareStatement;
  };
  readonly relay: {
    scan(request: {
      shards: readonly number[] | undefined;
      afterId: string;
      immediateLimit: number;
      dueLimit: number;
      bodyLimit: number;
    }): BareStatement;
    claim(request: { fence: Fence; rows: readonly RowToken[] }): BareStatement;
    listInFlight(request: {
      fence: Fence;
      idsByShard: readonly { shard: number; ids: readonly string[] }[];
    }): BareStatement;
    deleteSent(request: { fence: Fence; rows: readonly RowToken[]; from: "sending" | "pending" }): BareStatement;
    settleSent(request: {
      fence: Fence;
      outcomes: readonly SentOutcome[];
      elapsedMs: number;
      from: "sending" | "pending";
    }): BareStatement;
  };
}
