/**
 * Everything needed to run the broker contract on an adapter: a way to create the broker, topics on
 * a real server, a way to see arrivals and, if possible, faults.
 */
import type { Broker, BrokerFeatures, OutgoingMessage } from "../../brokers/broker.ts";
import type { MuteDirection } from "../tcp-proxy.ts";

/** A message as a consumer received it. */
export interface ArrivedMessage {
  /** The received bytes. */
  readonly body: Uint8Array;
  /** Names in lower case. Decoded as documented if the adapter encodes names or values. */
  readonly headers: Readonly<Record<string, string>>;
  /** Arrival, in epoch milliseconds of this host. */
  readonly receivedAtMs: number;
  /** Media type, compared if the broker carries one. */
  readonly contentType?: string | undefined;
  /**
   * Id by which the broker or its consumers deduplicate, such as `webhook-id`; must be the same on
   * every attempt.
   */
  readonly dedupeId?: string | undefined;
}

/** The messages that a case waits for. */
export interface ConsumeRequest {
  /** Topic to read. */
  readonly topic: string;
  /** Only messages whose header `rowpost-key` begins with this. Each case has its own prefix. */
  readonly keyPrefix: string;
  /** Resolve when messages with this many different keys have arrived. */
  readonly count: number;
  /**
   * Resolve after this time (ms) with the messages so far; the case then fails and lists the
   * missing ones.
   */
  readonly withinMs: number;
}

/** Topics that exist before the contract starts, except `unknown`. */
export interface ContractTopics {
  /** For messages without an ordering key. */
  readonly main: string;
  /** A second topic of the same kind. */
  readonly other: string;
  /**
   * For messages with ordering keys, where {@link BrokerHarness.consume} returns equal keys in the
   * order in which the broker got them. May be the same as `main`. Must be given when the adapter's
   * features say `ordering: "key"`.
   */
  readonly ordered?: string | undefined;
  /** A legal name that does not exist. Required if the features have `reportsUnknownTopic`. */
  readonly unknown?: string | undefined;
}

/**
 * Faults between the broker under test and its server, such as a `TcpProxy` of `rowpost/testing`.
 */
export interface BrokerFaults {
  /** Breaks all connections. */
  cut(): Promise<void>;
  /** Blocks all bytes without breaking connections. */
  mute(direction?: MuteDirection): void;
  /** Ends `mute`. */
  unmute(): void;
  /** Breaks all connections and refuses new ones. */
  refuse(): Promise<void>;
  /** Ends `refuse`. */
  accept(): Promise<void>;
  /** Bytes that reached the server, which show that a message was handed over. */
  bytesToTarget(): number;
}

/** An adapter prepared for the contract. */
export interface BrokerHarness {
  /** For titles and skip notes, such as `rocketmq`. */
  readonly name: string;
  /**
   * A new, independent broker on the server, through the faults if there are any. The case closes
   * it.
   */
  createBroker(): Broker | Promise<Broker>;
  /** Expected features, compared with the adapter's. */
  readonly features: BrokerFeatures;
  /** Topics that exist on the server. */
  readonly topics: ContractTopics;
  /**
   * Returns all arrivals so far in order, including duplicates. Calls do not compete: a message may
   * be returned many times.
   */
  consume(request: ConsumeRequest): Promise<readonly ArrivedMessage[]>;
  /** Undefined: cases with faults are skipped. */
  readonly faults?: BrokerFaults | undefined;
  /** Restarts the server; resolves when it runs. Acknowledged messages must survive. */
  readonly restart?: (() => Promise<void>) | undefined;
  /**
   * Changes a valid message so that the server permanently refuses it alone. Default, with a
   * `maxBodyBytes` in the features or `refusedBodyBytes`: a larger body.
   */
  readonly unsendable?: ((message: OutgoingMessage) => OutgoingMessage) | undefined;
  /** Size of a body that the server refuses, if the features name no limit. */
  readonly refusedBodyBytes?: number | undefined;
  /**
   * The body is sent in a later step that waits for an answer, as within a transaction, so it
   * cannot reach a server whose answers are held back.
   */
  readonly handsOverInSteps?: boolean | undefined;
  /** A broker with wrong credentials. */
  readonly createUnauthorized?: (() => Broker | Promise<Broker>) | undefined;
  /** Size of the big body if the features name no limit. Default 1 MiB. */
  readonly bigBodyBytes?: number | undefined;
  /** Longest time of a message to its consumer, in ms. Default 20,000. */
  readonly consumeWithinMs?: number | undefined;
  /** Longest recovery of an adapter after the server is back, in ms. Default 10,000. */
  readonly recoverWithinMs?: number | undefined;
  /** Ends everything the harness started. */
  close?(): Promise<void>;
}

/** A requirement of a case. */
export type BrokerNeed =
  | "faults"
  | "oneRequest"
  | "restart"
  | "unsendable"
  | "unauthorized"
  | "bodyLimit"
  | "orderedTopic"
  | "unknownTopic";

/**
 * Why a need is unmet: a fact of the broker (skip), or a gap in the harness, given the features
 * (failure).
 */
export interface UnmetNeed {
  readonly reason: string;
  readonly isGap: boolean;
}

/** Largest body; undefined if unknown. */
export function bodyLimit({ features, refusedBodyBytes }: BrokerHarness): number | undefined {
  return features.maxBodyBytes ?? (refusedBodyBytes === undefined ? undefined : refusedBodyBytes - 1);
}

/** Undefined if the need is met. */
export function unmetNeed(need: BrokerNeed, harness: BrokerHarness): UnmetNeed | undefined {
  const { features, topics } = harness;
  switch (need) {
    case "faults":
      return skipUnless(harness.faults, "there is no connection that could be broken (no `faults`)");
    case "oneRequest":
      return skipUnless(
        harness.handsOverInSteps !== true || undefined,
        "a message is handed over in steps, each after the answer to the one before (`handsOverInSteps`)",
      );
    case "restart":
      return skipUnless(harness.restart, "the server cannot be restarted from here (no `restart`)");
    case "unauthorized":
      return skipUnless(harness.createUnauthorized, "the server asks for no credentials (no `createUnauthorized`)");
    case "unsendable":
      return skipUnless(
        harness.unsendable ?? bodyLimit(harness),
        "no message is known that the server refuses (no `unsendable`, no `maxBodyBytes`, no `refusedBodyBytes`)",
      );
    case "bodyLimit":
      return skipUnless(
        bodyLimit(harness),
        "no limit of the body is known (`maxBodyBytes` is undefined, no `refusedBodyBytes`)",
      );
    case "orderedTopic":
      return topicNeed(topics.ordered, "ordered", features.ordering === "key", "consumers see no order by key");
    case "unknownTopic":
      return topicNeed(
        features.reportsUnknownTopic ? topics.unknown : undefined,
        "unknown",
        features.reportsUnknownTopic,
        "it does not tell an unknown topic apart",
      );
  }
}

function skipUnless(value: unknown, reason: string): UnmetNeed | undefined {
  return value === undefined ? { reason, isGap: false } : undefined;
}

function topicNeed(
  topic: string | undefined,
  name: keyof ContractTopics,
  claimed: boolean,
  reason: string,
): UnmetNeed | undefined {
  if (topic !== undefined) return undefined;
  if (!claimed) return { reason, isGap: false };
  return { reason: `the features claim it, so the harness must give topics.${name}`, isGap: true };
}
