/**
 * The broker contract: everything the relay needs of a message broker. The doc comments are the
 * specification. `brokerContract` in `rowpost/testing` runs it on each adapter against the real
 * server.
 */

/** A message on its way out. */
export interface OutgoingMessage {
  /**
   * Primary key of the row, in decimal. Consumers identify a message by `type` and `key`, not by
   * this.
   */
  readonly id: string;
  /** Kind of event. Together with `key` it identifies the message for consumers. */
  readonly type: string;
  /** Business identity, unique within the type. */
  readonly key: string;
  /** Destination on the broker. */
  readonly topic: string;
  /** Text is sent as UTF-8. Adapters never parse or change it. */
  readonly body: string | Uint8Array;
  /** Media type of the body; `application/json` when the table has no such column. */
  readonly contentType: string;
  /**
   * The user's headers, `traceparent`, `rowpost-id`, `rowpost-type`, `rowpost-key`,
   * `rowpost-attempt`.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** Messages with equal keys reach the broker in the order in which `publish` gets them. */
  readonly orderingKey: string | undefined;
  /** 1 for the first claim of the message. */
  readonly attempt: number;
  /** The message was `sent` before and is wanted again: deduplication must not drop it. */
  readonly resend?: boolean | undefined;
}

/** The broker acknowledged the message with a receipt. Only this makes a row `sent`. */
export interface PublishSent {
  /** Discriminant. */
  readonly status: "sent";
  /** The broker's receipt, at most 255 characters. Its format is on the broker's page. */
  readonly messageId: string;
}

/**
 * What a failure is about, which decides what the relay does next.
 * - `message`: this message (too large, unknown topic, wrong type). Counted as an attempt; others
 *   go on.
 * - `destination`: its topic is throttled or away for now. Uncounted; the topic's circuit breaker
 *   opens.
 * - `connection`: the broker cannot be reached, and the message was certainly NOT handed over.
 *   Uncounted; everything for this broker pauses.
 * - `unknown`: a deadline passed or the connection broke after the message was handed over: it may
 *   be stored. Counted as an attempt.
 */
export type FailureScope = "message" | "destination" | "connection" | "unknown";

/** The message was not acknowledged. */
export interface PublishFailed {
  /** Discriminant. */
  readonly status: "failed";
  /** The thing that failed: this message, its destination, the connection, or unknown. */
  readonly scope: FailureScope;
  /** For scope `message`. False when no retry can help: the row becomes `failed` at once. */
  readonly retriable: boolean;
  /** The broker's error code, such as `MESSAGE_BODY_TOO_LARGE`, `ECONNREFUSED`, `HTTP_503`. */
  readonly code: string;
  /** The broker's error text, stored in `fail_reason`. */
  readonly reason: string;
  /**
   * For scope `message`, when the cause may be the destination: `away` (a gateway's 502) or
   * `missing` (no queue yet, 404). The relay then retries without counting, unless other messages
   * of the topic are sent meanwhile; for `missing`, at most five minutes.
   */
  readonly absent?: "away" | "missing" | undefined;
  /** Wait that the broker asked for, in ms (`Retry-After`, throttling). Wins over the backoff. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * The message was not handed to the broker and has no fault: an earlier message of its ordering key
 * failed, or the call was aborted first. The relay returns it without counting an attempt.
 */
export interface PublishNotStarted {
  /** Discriminant. */
  readonly status: "notStarted";
  /** Which of the two reasons it was, for logs. */
  readonly reason: string;
}

/** What became of one message of a {@link Broker.publish} call. */
export type PublishResult = PublishSent | PublishFailed | PublishNotStarted;

/** Capabilities of an adapter, read by the contract suite and by `routes`. */
export interface BrokerFeatures {
  /**
   * `key`: messages with equal ordering keys keep their order. `none`: only publishing is ordered.
   */
  readonly ordering: "key" | "none";
  /** The broker distinguishes an unknown topic from other failures. */
  readonly reportsUnknownTopic: boolean;
  /** Largest body in bytes, if the adapter knows it. */
  readonly maxBodyBytes: number | undefined;
}

/** Options of one {@link Broker.publish} call. */
export interface PublishOptions {
  /** Aborted at the relay's publish timeout. */
  readonly signal: AbortSignal;
  /** For a broker that keeps messages in the relay's own database. */
  readonly transaction?: RelayTransaction | undefined;
}

/**
 * Stores messages and settles their rows in one transaction, so both happen or neither. A broker
 * that uses it for messages of a call still returns a result for each.
 */
export interface RelayTransaction {
  /** The database object of the relay. The transaction is usable only if it is the broker's own. */
  readonly database: object;
  /**
   * Begins a transaction, locks the rows of these messages, calls `store` with those this relay
   * still holds (leaving out followers of a message it lost), writes them `sent` with the receipts,
   * and commits. Resolves to the receipts by message id; a message without one was not stored.
   * Rejects with the errors of `store` and of the database. Nothing was written then, except that
   * after a `CommitUnknownError` everything may have been.
   */
  settle(
    messages: readonly OutgoingMessage[],
    store: (tx: unknown, messages: readonly OutgoingMessage[]) => Promise<readonly string[]>,
  ): Promise<ReadonlyMap<string, string>>;
}

/**
 * The brokers behind one that stands for several (`routes`). The relay keeps a connection gate and
 * a window for each and never mixes two of them in a call, so one that is away, silent or slow
 * delays only its own topics.
 */
export interface BrokerRoutes {
  /** Unique names. */
  readonly brokers: readonly string[];
  /** Broker of a topic, always the same one. Undefined if none takes it. */
  brokerOf(topic: string): string | undefined;
  /**
   * Patterns of the topics taken, in which `*` matches any characters. The relay leaves other
   * topics to other relays of the table. Undefined: every topic.
   */
  readonly topics?: readonly string[] | undefined;
}

/**
 * A broker adapter.
 *
 * - `publish` returns one result for each message, in the order of the batch. It never rejects for
 *   reasons that lie in a message or in the broker; a rejection is a bug of the adapter and is
 *   treated as `unknown` for the whole batch.
 * - It may run several calls side by side; the relay never gives two running calls messages of the
 *   same ordering key.
 * - Within one call, messages of one ordering key are handed over in batch order, and after one of
 *   them failed the later ones of that key are not handed over any more: they are `notStarted`.
 *   Those that were handed over together with it, in one request that the broker takes whole or not
 *   at all, are `unknown` when it is.
 * - It settles within the signal's deadline (plus a grace of 1 s), whatever the server does.
 * - `check` resolves when the broker can be reached with these credentials, else rejects with a
 *   `BrokerError` that says what to do.
 * - `close` ends what the adapter opened: no timer, socket or handle stays. A client handed in by
 *   the user is left open. Calling it twice is fine. A `publish` that is running ends soon, its
 *   messages as after an abort; one that is called later fails with scope `connection`, code
 *   `CLOSED`.
 */
export interface Broker {
  /** Short name for logs and metrics, such as `rocketmq`. */
  readonly name: string;
  /**
   * Servers or URL it publishes to, for display, without secrets. Relays of a table compare it,
   * because a message goes to the broker of whichever relay holds its shard. Undefined if unknown,
   * as with a client that was passed in.
   */
  readonly target?: string | undefined;
  /** Capabilities of this adapter. */
  readonly features: BrokerFeatures;
  /** Set only by a broker that stands for several. */
  readonly routes?: BrokerRoutes | undefined;
  /** Publishes messages. Returns one result for each, in the order of the batch. */
  publish(batch: readonly OutgoingMessage[], options: PublishOptions): Promise<PublishResult[]>;
  /**
   * Resolves when the broker is reachable and accepts the credentials; else rejects with a
   * `BrokerError`.
   */
  check(): Promise<void>;
  /** Closes everything the adapter opened. May be called twice. */
  close(): Promise<void>;
}
