/** Kafka through kafkajs: resolves, and so commits, the offsets of handled records. */
import { unlessAborted } from "../../runtime/abort.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { type Consumption, consumptionOf } from "../consumption.ts";
import type { DeliveredMessage } from "../message.ts";
import { type Opened, reopening } from "../reopening.ts";
import type { Verdict, Work } from "../work.ts";
import { type KafkaDelivered, kafkaMessage } from "./record.ts";

interface KafkajsCrash {
  readonly payload: { readonly error: Error; readonly restart: boolean };
}

/** A connected kafkajs consumer, with the methods used. */
export interface KafkajsConsumer {
  /** Called after a final crash, which disconnects it. */
  connect(): Promise<void>;
  /** Returns a function that removes the listener. */
  on(event: "consumer.crash", listener: (crash: KafkajsCrash) => void): () => void;
  /** Called with `topics` and `fromBeginning`. */
  subscribe(options: { topics: string[]; fromBeginning?: boolean }): Promise<void>;
  /** Called after `subscribe`. */
  run(options: never): Promise<void>;
  /** Ends `run`; the consumer stays connected. */
  stop(): Promise<void>;
}

interface Batch {
  readonly topic: string;
  readonly partition: number;
  readonly messages: readonly KafkajsMessage[];
}

interface KafkajsMessage {
  readonly key?: Buffer | null;
  readonly value: Buffer | null;
  readonly headers?: KafkaDelivered["headers"];
  readonly offset: string;
}

interface BatchPayload {
  readonly batch: Batch;
  readonly resolveOffset: (offset: string) => void;
  readonly heartbeat: () => Promise<void>;
  readonly isRunning: () => boolean;
  readonly isStale: () => boolean;
}

interface Runner {
  run(options: {
    readonly eachBatchAutoResolve: boolean;
    readonly partitionsConsumedConcurrently: number;
    readonly eachBatch: (payload: BatchPayload) => Promise<void>;
  }): Promise<void>;
}

interface Parts {
  readonly consumer: KafkajsConsumer;
  readonly topics: readonly string[];
  readonly fromBeginning: boolean;
  readonly concurrency: number;
  readonly pauseMs: number;
  readonly work: Work<KafkaDelivered>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** kafkajs sends at most one every 3 s, however often it is asked. */
const HEARTBEAT_MS = 1_000;

export async function consumeKafkajs(parts: Parts): Promise<Consumption> {
  const { clock, consumer, logger, topics, work } = parts;
  let isFirst = true;

  async function open(): Promise<Opened> {
    if (!isFirst) await consumer.connect();
    isFirst = false;
    return await run(parts);
  }

  await reopening({
    open,
    closing: work.closing,
    clock,
    logger,
    what: `Kafka topics ${topics.join(", ")}`,
    discard: () => consumer.stop().catch(() => undefined),
  });
  return consumptionOf(async () => {
    const [closed] = await Promise.all([work.drain(), consumer.stop().catch(() => undefined)]);
    return closed;
  });
}

/** kafkajs restarts by itself after most errors; the others end this run. */
async function run(parts: Parts): Promise<Opened> {
  const { concurrency, consumer, fromBeginning, logger, topics } = parts;
  await consumer.subscribe({ topics: [...topics], fromBeginning });
  let end = (_reason: unknown): void => undefined;
  const ended = new Promise<unknown>((resolve) => {
    end = resolve;
  });
  const forget = consumer.on("consumer.crash", ({ payload: { error, restart } }) => {
    if (restart) {
      logger.warn("a consumer has crashed and is started again by its client", { topics, error });
      return;
    }
    forget();
    end(error);
  });
  try {
    await (consumer as unknown as Runner).run({
      // Unresolved records come with the next fetch, without throwing.
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: concurrency,
      eachBatch: (payload: BatchPayload) => consumeBatch(parts, payload),
    });
  } catch (error) {
    forget();
    throw error;
  }
  return { ended };
}

/**
 * Handles a batch. At its end kafkajs commits the resolved records, those handled without a gap
 * from the first on. The rest comes again, and records among them that were handled are then
 * duplicates.
 */
async function consumeBatch(parts: Parts, payload: BatchPayload): Promise<void> {
  const { batch, heartbeat, isRunning, isStale, resolveOffset } = payload;
  const { work } = parts;
  const handled: boolean[] = [];
  let resolved = 0;
  let isBroken = false;

  function tell(index: number, verdict: Verdict): void {
    if (verdict !== "handled") {
      // Set before the next record of its key begins, which would overtake it.
      isBroken = true;
      return;
    }
    handled[index] = true;
    for (; handled[resolved] === true; resolved += 1) resolveOffset(batch.messages[resolved]?.offset ?? "");
  }

  const verdicts = batch.messages.map((message, index) => {
    const raw = { topic: batch.topic, partition: batch.partition, ...message };
    return work.handle({
      raw,
      read: (identity): DeliveredMessage => kafkaMessage(raw, identity),
      within: `${batch.topic}\n${batch.partition}`,
      isOver: () => isBroken || !isRunning() || isStale(),
      tell: (verdict) => tell(index, verdict),
    });
  });
  try {
    await beating(parts, heartbeat, Promise.all(verdicts));
    if (isBroken) await beating(parts, heartbeat, parts.clock.sleep(parts.pauseMs, work.closing));
  } catch (error) {
    // The group is rebalancing, and another member may own the partition.
    isBroken = true;
    await unlessAbandoned(work, Promise.all(verdicts));
    throw error;
  }
}

/** Waits while sending heartbeats. Rejects when the group has to be rejoined. */
async function beating(parts: Parts, heartbeat: () => Promise<void>, waited: Promise<unknown>): Promise<void> {
  const ended = new AbortController();
  let isOver = false;
  const over = unlessAbandoned(parts.work, waited).then(() => {
    isOver = true;
    ended.abort();
  });
  while (!isOver) {
    await parts.clock.sleep(HEARTBEAT_MS, ended.signal);
    if (!isOver) await heartbeat();
  }
  await over;
}

function unlessAbandoned(work: Work<KafkaDelivered>, waited: Promise<unknown>): Promise<unknown> {
  return unlessAborted(work.abandoned, waited, () => undefined).catch(() => undefined);
}
