import { BrokerError } from "../../runtime/errors.ts";

/** What `connect` of `@nats-io/transport-node` resolves to: what is called of it. */
export interface NatsConsumeConnection {
  /** Queries the server, and acknowledges with a reply. */
  request(subject: string, data: string, options: { timeout: number }): Promise<{ readonly data: Uint8Array }>;
  /** Pulls, and reports that a message is still being handled. */
  publish(subject: string, data: string, options?: { reply?: string }): void;
  /** For deliveries of the server. */
  subscribe(subject: string, options: { callback: never }): { drain(): Promise<void> };
  /** Resolves when the server has read everything written before. */
  flush(): Promise<void>;
  /** Resolves when the connection is over and does not reconnect. */
  closed(): Promise<unknown>;
  /** Ends it. */
  close(): Promise<void>;
}

export interface ConsumerAddress {
  readonly stream: string;
  readonly durable: string;
  readonly apiPrefix: string;
}

export interface ConsumerFacts {
  /** Time before it delivers a message to another consumer. */
  readonly ackWaitMs: number;
  /** Deliveries after which it stops; infinite: never. */
  readonly maxDeliveries: number;
}

interface InfoAnswer {
  readonly error?: { readonly code?: number; readonly description?: string } | null | undefined;
  readonly config?: {
    readonly ack_policy?: string;
    readonly ack_wait?: number;
    readonly backoff?: readonly number[];
    readonly max_deliver?: number;
    readonly deliver_subject?: string;
  };
}

/** The same wait as that of a broker's `check`. */
export const ASK_TIMEOUT_MS = 5_000;
const NANOS = 1_000_000;

/** Throws `BrokerError`. */
export async function askForConsumer(
  connection: NatsConsumeConnection,
  { apiPrefix, durable, stream }: ConsumerAddress,
): Promise<ConsumerFacts> {
  const { data } = await connection.request(`${apiPrefix}.CONSUMER.INFO.${stream}.${durable}`, "", {
    timeout: ASK_TIMEOUT_MS,
  });
  const { config = {}, error } = JSON.parse(new TextDecoder().decode(data)) as InfoAnswer;
  const advice = `nats consumer add ${stream} ${durable} --pull --ack explicit --max-deliver -1 --defaults`;
  const what = `the NATS consumer ${durable} of the stream ${stream}`;
  if (error)
    throw new BrokerError("CANNOT_CONSUME", `${what}: ${error.description ?? error.code}; create it: ${advice}`);
  if (config.deliver_subject)
    throw new BrokerError("CANNOT_CONSUME", `${what} is a push consumer; make one to pull: ${advice}`);
  if (config.ack_policy !== "explicit") {
    const said = `${what} has the ack policy "${config.ack_policy}", which acknowledges messages that nobody has handled`;
    throw new BrokerError("CANNOT_CONSUME", `${said}; make one with explicit: ${advice}`);
  }
  const waits = config.backoff?.length ? config.backoff : [config.ack_wait ?? 30_000 * NANOS];
  const { max_deliver: most = -1 } = config;
  return { ackWaitMs: Math.min(...waits) / NANOS, maxDeliveries: most > 0 ? most : Number.POSITIVE_INFINITY };
}
