/**
 * The broker contract: all that the relay needs of a message broker. The doc comments are the
 * specification; the suite in `rowpost/testing` (`brokerContract`) runs it on every adapter with
 * the real server behind it.
 */

/** A message on its way out. */
export interface OutgoingMessage {
  /** Primary key of the row, in decimal. No identity for consumers: that is `type` and `key`. */
  readonly id: string;
  /** What happened; with `key` the identity for consumers. */
  readonly type: string;
  /** Business identity, unique within the type. */
  readonly key: string;
  /** Destination on the broker. */
  readonly topic: string;
  /** Text goes out as UTF-8. Never parsed or changed by an adapter. */
  readonly body: string | Uint8Array;
  /** Media type of the body; `application/json` when the table has no such column. */
  readonly contentType: string;
  /** The user's, `traceparent`, `rowpost-id`, `rowpost-type`, `rowpost-key`, `rowpost-attempt`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Messages with equal keys must reach the broker in the order in which `publish` gets them. */
  readonly orderingKey: string | undefined;
  /** 1 for the first claim of the message. */
  readonly attempt: number;
  /** It was `sent` before, and is wanted again: what knows copies must not drop it as one. */
  readonly resend?: boolean | undefined;
}

/** The broker acknowledged the message with its own receipt. Only this makes a row `sent`. */
export interface PublishSent {
  /** Tells the results apart. */
  readonly status: "sent";
  /** The broker's receipt, at most 255 characters; the broker's page says what it is made of. */
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
  /** Tells the results apart. */
  readonly status: "failed";
  /** What the failure is about. */
  readonly scope: FailureScope;
  /** Of scope `message`. False: no retry can help, and it is settled as `failed` at once. */
  readonly retriable: boolean;
  /** The broker's name for it, such as `MESSAGE_BODY_TOO_LARGE`, `ECONNREFUSED`, `HTTP_503`. */
  readonly code: string;
  /** The broker's own words. Goes into `fail_reason`. */
  readonly reason: string;
  /**
   * Of scope `message`: it may as well be the destination, which is `away` (a gateway's 502) or
   * `missing` (no queue yet, 404). The relay takes it for that, uncounted, unless other messages of
   * the topic are sent meanwhile; a missing one for five minutes.
   */
  readonly absent?: "away" | "missing" | undefined;
  /** The broker asked to wait this long (`Retry-After`, throttling). Wins over the backoff. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * Nothing of this message was handed to the broker, and nothing is wrong with it: an earlier
 * message of its ordering key failed, or the call was aborted before its turn. The relay gives it
 * back uncounted.
 */
export interface PublishNotStarted {
  /** Tells the results apart. */
  readonly status: "notStarted";
  /** For logs: which of the two it was. */
  readonly reason: string;
}

/** What became of one message of a {@link Broker.publish} call. */
export type PublishResult = PublishSent | PublishFailed | PublishNotStarted;

/** What an adapter can do: read by the contract suite, and by `routes`. */
export interface BrokerFeatures {
  /** `key`: equal ordering keys keep their order. `none`: only publishing has an order. */
  readonly ordering: "key" | "none";
  /** The broker tells an unknown topic apart from other failures. */
  readonly reportsUnknownTopic: boolean;
  /** Largest body in bytes, when the adapter knows one. */
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
 * Storing messages and settling their rows in one transaction: both are there, or neither. A broker
 * that uses it for messages of this call still gives each its result.
 */
export interface RelayTransaction {
  /** The database object that the relay was made with: it is this one, or it is of no use. */
  readonly database: object;
  /**
   * Begins a transaction, locks the rows of these messages, calls `store` with those that are still
   * in this relay's hands (and with no follower of one that is not), writes them `sent` with the
   * receipts that it resolves to, and commits. Resolves to the receipts by message id; what has
   * none was not stored. Rejects with what `store` rejects with, and with errors of the database:
   * nothing was written then, but with a `CommitUnknownError`, perhaps all.
   */
  settle(
    messages: readonly OutgoingMessage[],
    store: (tx: unknown, messages: readonly OutgoingMessage[]) => Promise<readonly string[]>,
  ): Promise<ReadonlyMap<string, string>>;
}

/**
 * The brokers behind one that stands for several (`routes`). The relay keeps a connection gate and
 * a window for each, and hands no call messages for two of them: one that is away, silent or slow
 * holds up its own topics and nobody else's.
 */
export interface BrokerRoutes {
  /** Their names, each once. */
  readonly brokers: readonly string[];
  /** The one that takes the topic, always the same; undefined: none does. */
  brokerOf(topic: string): string | undefined;
  /**
   * Patterns of the topics that one of them takes, in which `*` stands for any characters. A relay
   * leaves the messages of all other topics to other relays of the table. Undefined: every topic.
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
   * Where it publishes, for people and without secrets: its servers or its URL. Relays of one table
   * compare it, because each message goes to the broker of whichever relay holds its shard.
   * Undefined: not known, as of a client that was handed in.
   */
  readonly target?: string | undefined;
  /** What this adapter can do. */
  readonly features: BrokerFeatures;
  /** Only of a broker that stands for several: which of them takes what. */
  readonly routes?: BrokerRoutes | undefined;
  /** Hands messages over; one result for each, in the order of the batch. */
  publish(batch: readonly OutgoingMessage[], options: PublishOptions): Promise<PublishResult[]>;
  /** Resolves when the broker can be reached and lets us in, else rejects with a `BrokerError`. */
  check(): Promise<void>;
  /** Ends what the adapter opened; may be called twice. */
  close(): Promise<void>;
}
