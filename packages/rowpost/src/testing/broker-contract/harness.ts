/**
 * What somebody who runs the broker contract on an adapter has to bring: a way to make the broker,
 * topics on a real server, a way to see what arrived there, and, as far as it is possible, faults.
 */
import type { Broker, BrokerFeatures, OutgoingMessage } from "../../brokers/broker.ts";
import type { MuteDirection } from "../tcp-proxy.ts";

/** A message as a consumer on the other side got it. */
export interface ArrivedMessage {
  /** The bytes that arrived. */
  readonly body: Uint8Array;
  /**
   * Names in lower case. Where the adapter encodes names or values (and documents it), decoded as
   * the documentation says.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** When it arrived, epoch milliseconds of this host. */
  readonly receivedAtMs: number;
  /** Media type, where the broker carries one; it is then compared. */
  readonly contentType?: string | undefined;
  /**
   * What the broker or its consumers know copies of one message by, such as `webhook-id`; must then
   * be the same on every attempt.
   */
  readonly dedupeId?: string | undefined;
}

/** Which messages a case waits for. */
export interface ConsumeRequest {
  /** Where to look. */
  readonly topic: string;
  /**
   * Only messages whose header `rowpost-key` begins with this. Every case has a prefix of its own.
   */
  readonly keyPrefix: string;
  /** Resolve once this many messages with different keys are there. */
  readonly count: number;
  /**
   * Resolve after this time with what is there; the case then fails with a list of what is missing.
   */
  readonly withinMs: number;
}

/** Topics that exist before the contract starts, but for `unknown`. */
export interface ContractTopics {
  /** For messages without an ordering key. */
  readonly main: string;
  /** A second one of the same kind. */
  readonly other: string;
  /**
   * For messages with ordering keys, where {@link BrokerHarness.consume} returns equal keys in the
   * order in which the broker got them. May be the same as `main`. Must be given when the adapter's
   * features say `ordering: "key"`.
   */
  readonly ordered?: string | undefined;
  /**
   * A legal name that does not exist. Must be given when the features say `reportsUnknownTopic`.
   */
  readonly unknown?: string | undefined;
}

/**
 * Faults between the broker under test and its server. A `TcpProxy` of `rowpost/testing` is one.
 */
export interface BrokerFaults {
  /** Breaks all connections. */
  cut(): Promise<void>;
  /** Lets nothing through any more, and breaks nothing. */
  mute(direction?: MuteDirection): void;
  /** Ends `mute`. */
  unmute(): void;
  /** Breaks all connections and takes no new ones. */
  refuse(): Promise<void>;
  /** Ends `refuse`. */
  accept(): Promise<void>;
  /** Bytes that arrived at the server, so that a case can tell that a message was handed over. */
  bytesToTarget(): number;
}

/** One adapter, ready to be put to the contract. */
export interface BrokerHarness {
  /** For titles and skip notes, such as `rocketmq`. */
  readonly name: string;
  /**
   * A new, independent broker on the server; through the faults, when there are any. The case
   * closes it.
   */
  createBroker(): Broker | Promise<Broker>;
  /** What the adapter should say of itself; compared with what it does say. */
  readonly features: BrokerFeatures;
  /** Topics that exist on the server. */
  readonly topics: ContractTopics;
  /**
   * Returns what has arrived so far, copies included, in the order of arrival. Calls do not
   * compete: a message may be returned many times.
   */
  consume(request: ConsumeRequest): Promise<readonly ArrivedMessage[]>;
  /** Undefined: cases with faults are skipped. */
  readonly faults?: BrokerFaults | undefined;
  /**
   * Stops the server and starts it again; resolves when it runs. What it had acknowledged must
   * still be there.
   */
  readonly restart?: (() => Promise<void>) | undefined;
  /**
   * Changes a good message so that the server is certain to refuse it for good, and it alone.
   * Default, where the features name a `maxBodyBytes` or there are `refusedBodyBytes`: a body above
   * that.
   */
  readonly unsendable?: ((message: OutgoingMessage) => OutgoingMessage) | undefined;
  /**
   * Bytes of a body that the server refuses, where the limit is the server's alone and the features
   * name none.
   */
  readonly refusedBodyBytes?: number | undefined;
  /**
   * The body goes out in a step that waits for the answer to one before it, as within a
   * transaction: it cannot be at a server whose answers do not come back.
   */
  readonly handsOverInSteps?: boolean | undefined;
  /** A broker with wrong credentials. */
  readonly createUnauthorized?: (() => Broker | Promise<Broker>) | undefined;
  /** Size of the big body where the features name no limit. Default 1 MiB. */
  readonly bigBodyBytes?: number | undefined;
  /** How long a message may take to its consumer. Default 20,000. */
  readonly consumeWithinMs?: number | undefined;
  /** How long an adapter may take to work again after the server is back. Default 10,000. */
  readonly recoverWithinMs?: number | undefined;
  /** Ends what the harness started. */
  close?(): Promise<void>;
}

/** What a case cannot do without. */
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
 * Why a need is not met: a fact of the broker (skip), or something that the harness should bring
 * because the features say so (a failure).
 */
export interface UnmetNeed {
  readonly reason: string;
  readonly isGap: boolean;
}

/** The largest body that may go out; undefined when nobody knows one. */
export function bodyLimit({ features, refusedBodyBytes }: BrokerHarness): number | undefined {
  return features.maxBodyBytes ?? (refusedBodyBytes === undefined ? undefined : refusedBodyBytes - 1);
}

/** Undefined when the harness has what is needed. */
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
