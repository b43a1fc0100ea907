/**
 * A client that the user already has, told by its shape, and refused when one of its settings could
 * lose messages or hold them for ever.
 *
 * Why these are refused (measured with \@platformatic/kafka 2.12.1 on Kafka 4.3):
 * - \@platformatic/kafka, `idempotent` with few retries: the client makes that "retry for ever",
 *   and a send never ends while the broker is away.
 * - serializers and registries: the body would not arrive byte for byte.
 */

import { ConfigurationError } from "../../runtime/errors.ts";

/** The `Kafka` object of kafkajs, with the methods used. */
export interface KafkajsClient {
  /** Makes a producer. */
  producer(options?: object): object;
  /** Makes an admin client. */
  admin(options?: object): object;
  /** Not called. Identifies a `Kafka` object. */
  consumer(options: never): object;
}

/** A `Producer` of \@platformatic/kafka: what is called of it. */
export interface PlatformaticClient {
  /** Sends a batch. */
  send(options: never): Promise<unknown>;
  /** Fetches topics and their partitions. */
  metadata(options: never): Promise<unknown>;
  /** Not used. Identifies a `Producer`. */
  readonly connections: object;
}

/** A client that can be passed in. */
export type KafkaClient = KafkajsClient | PlatformaticClient;

export type GivenClient =
  | { readonly kind: "kafkajs"; readonly client: KafkajsClient }
  | { readonly kind: "platformatic"; readonly client: PlatformaticClient };

/** Throws {@link ConfigurationError} for anything that is no usable client. */
export function recognize(client: KafkaClient): GivenClient {
  const has = (name: string): boolean =>
    typeof (client as unknown as Readonly<Record<string, unknown>> | null)?.[name] === "function";
  if (has("producer") && has("admin") && has("consumer")) {
    return { kind: "kafkajs", client: client as KafkajsClient };
  }
  if (has("send") && has("metadata") && "connections" in client) {
    refuseUnsafe(client);
    return { kind: "platformatic", client };
  }
  if (has("sendBatch") && has("isIdempotent")) {
    throw new ConfigurationError(
      "client is a producer of kafkajs; hand in the Kafka object that made it, whose connections are used",
    );
  }
  throw new ConfigurationError(
    "client is neither the Kafka object of kafkajs nor a Producer of @platformatic/kafka; hand in one of these, or give brokers",
  );
}

const OPTIONS = "plt.kafka.base.options";
const CHANGES_MESSAGES = ["serializers", "registry", "beforeSerialization"];

function refuseUnsafe(client: object): void {
  const options = optionsOf(client);
  if (options["idempotent"] === true) {
    throw new ConfigurationError(
      "client is an idempotent producer of @platformatic/kafka: it retries without end while a broker is away, so that nothing would ever be given up or counted; make it with idempotent: false",
    );
  }
  const changes = CHANGES_MESSAGES.find((name) => options[name] !== undefined);
  if (changes !== undefined) {
    throw new ConfigurationError(
      `client is a producer with ${changes}: messages would not arrive byte for byte; hand in one without`,
    );
  }
}

/** The options of a producer of \@platformatic/kafka; empty when they cannot be seen. */
function optionsOf(client: object): Readonly<Record<string, unknown>> {
  const symbol = Object.getOwnPropertySymbols(client).find(({ description }) => description === OPTIONS);
  return symbol === undefined ? {} : ((client as Record<symbol, Record<string, unknown>>)[symbol] ?? {});
}
