/** Kafka: options, and which client it is. */
import { ConfigurationError } from "../../runtime/errors.ts";
import type { Transaction } from "../../transactions/executor.ts";
import type { Consumption } from "../consumption.ts";
import { type ConsumeOptions, type OwnKinds, type Park, workSettings } from "../options.ts";
import { createWork } from "../work.ts";
import { consumeKafkajs, type KafkajsConsumer } from "./kafkajs.ts";
import type { KafkaDelivered } from "./record.ts";

/** Options of {@link consumeKafka}. */
export interface KafkaConsumeOptions<Tx = Transaction> extends ConsumeOptions<KafkaDelivered, Tx> {
  /** Yours, connected, and not running yet. It stays connected at `close`. */
  readonly consumer: KafkajsConsumer;
  /** Topics to read. */
  readonly topics: readonly string[];
  /** Where a group begins that has committed nothing yet. Default true: with the first record. */
  readonly fromBeginning?: boolean | undefined;
  /**
   * Kafka has no dead letters. `redeliver`, the default: the partition is read again from that
   * record on, until it is handled; nothing behind it is committed.
   */
  readonly unhandled?: "redeliver" | Park<KafkaDelivered> | undefined;
}

const KINDS: OwnKinds<KafkaConsumeOptions> = {
  consumer: { needed: true, has: "run", from: "a consumer of kafkajs, such as kafka.consumer({ groupId }) makes" },
  topics: "array",
  fromBeginning: "boolean",
  unhandled: ["string", "function"],
};

/**
 * Handles the records of topics, each once. An offset is committed when its record and all before
 * it in the partition are handled. Those of one ordering key are handled one after the other,
 * others of the partition beside them.
 *
 * Resolves when the consumer runs. Throws `ConfigurationError`, and what the client says to
 * `subscribe`.
 */
export async function consumeKafka<Tx = Transaction>(options: KafkaConsumeOptions<Tx>): Promise<Consumption> {
  const settings = workSettings("consumeKafka", options, KINDS, { noDeadLetters: true });
  const { consumer, fromBeginning = true, topics } = options;
  if (topics === undefined || topics.length === 0)
    throw new ConfigurationError('consumeKafka takes { topics: ["orders"] }');
  const { clock, concurrency, pauseMs } = settings;
  return await consumeKafkajs({
    ...{ consumer, topics, fromBeginning, concurrency, pauseMs },
    work: createWork(settings),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  });
}
