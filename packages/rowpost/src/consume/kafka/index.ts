import { ConfigurationError } from "../../runtime/errors.ts";
import type { Transaction } from "../../transactions/executor.ts";
import type { Consumption } from "../consumption.ts";
import { type ConsumeOptions, type OwnKinds, type Park, workSettings } from "../options.ts";
import { createWork } from "../work.ts";
import { consumeKafkajs, type KafkajsConsumer } from "./kafkajs.ts";
import { consumePlatformatic, type PlatformaticConsumer } from "./platformatic.ts";
import type { KafkaDelivered } from "./record.ts";

/** Options of {@link consumeKafka}. */
export interface KafkaConsumeOptions<Tx = Transaction> extends ConsumeOptions<KafkaDelivered, Tx> {
  /**
   * Yours, of kafkajs, connected, or of @platformatic/kafka; and not running yet. It stays open at
   * `close`. Where it ends for good it is begun again.
   */
  readonly consumer: KafkajsConsumer | PlatformaticConsumer;
  /** Topics to read. */
  readonly topics: readonly string[];
  /** Start of a group without committed offsets. Default true: the first record. */
  readonly fromBeginning?: boolean | undefined;
  /**
   * With @platformatic/kafka: records in memory, those whose handlers run included. Default: four
   * times `concurrency`. kafkajs hands over what a fetch has brought.
   */
  readonly prefetch?: number | undefined;
  /**
   * Kafka has no dead letters. `redeliver`, the default: the partition is read again from that
   * record on (kafkajs), or the record stays here (@platformatic/kafka), until it is handled;
   * nothing behind it is committed.
   */
  readonly unhandled?: "redeliver" | Park<KafkaDelivered> | undefined;
}

const KINDS: OwnKinds<KafkaConsumeOptions> = {
  consumer: {
    needed: true,
    has: "on",
    from: "a consumer of kafkajs, such as kafka.consumer({ groupId }) makes, or of @platformatic/kafka",
  },
  prefetch: "number",
  topics: "array",
  fromBeginning: "boolean",
};

/**
 * Handles the records of topics, each once. Commits an offset when its record and all earlier ones
 * of the partition are handled. Records of one ordering key are handled in order, others of the
 * partition in parallel.
 *
 * Resolves when the consumer runs. Throws `ConfigurationError`, and the client's error of
 * `subscribe`.
 */
export async function consumeKafka<Tx = Transaction>(options: KafkaConsumeOptions<Tx>): Promise<Consumption> {
  const settings = workSettings("consumeKafka", options, KINDS, { noDeadLetters: true });
  const { consumer, fromBeginning = true, topics } = options;
  if (topics === undefined || topics.length === 0)
    throw new ConfigurationError('consumeKafka takes { topics: ["orders"] }');
  const { clock, concurrency, logger, pauseMs, prefetch: room } = settings;
  if (isPlatformatic(consumer)) {
    return await consumePlatformatic({
      consumer,
      topics,
      fromBeginning,
      room,
      clock,
      logger,
      work: createWork(settings),
    });
  }
  return await consumeKafkajs({
    consumer,
    topics,
    fromBeginning,
    concurrency,
    pauseMs,
    clock,
    logger,
    work: createWork(settings),
  });
}

/** Throws `ConfigurationError` for any other consumer. */
function isPlatformatic(consumer: KafkaConsumeOptions["consumer"]): consumer is PlatformaticConsumer {
  if ("run" in consumer && typeof consumer.run === "function") return false;
  if ("commit" in consumer && typeof consumer.commit === "function") return true;
  throw new ConfigurationError(
    "consumeKafka: consumer must be one of kafkajs, such as kafka.consumer({ groupId }) makes, or of @platformatic/kafka",
  );
}
