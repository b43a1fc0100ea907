/** Kafka through kafkajs: offsets are resolved, and so committed, behind what is handled. */
import { unlessAborted } from "../../runtime/abort.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { type Consumption, consumptionOf } from "../consumption.ts";
import type { DeliveredMessage } from "../message.ts";
import { type Opened, reopening } from "../reopening.ts";
import type { Verdict, Work } from "../work.ts";
import { type KafkaDelivered, kafkaMessage } from "./record.ts";

/** What kafkajs tells of a crash. */
interface KafkajsCrash {
  readonly payload: { readonly error: Error; readonly restart: boolean };
}

/** A consumer of kafkajs, connected: what is called of it. */
export interface KafkajsConsumer {
  /** Called after it has crashed for good, which disconnects it. */
  connect(): Promise<void>;
  /** Returns what takes the listener off again. */
  on(event: "consumer.crash", listener: (crash: KafkajsCrash) => void): () => void;
  /** Called with `topics` and `fromBeginning`. */
  subscribe(options: { topics: string[]; fromBeginning?: boolean }): Promise<void>;
  /** Called after `subscribe`. */
  run(options: never): Promise<void>;
  /** Ends what `run` began; it stays connected. */
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

/** What kafkajs gives to `eachBatch`. */
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
  /** Before a partition whose message was not handled is read again. */
  readonly pauseMs: number;
  readonly work: Work<KafkaDelivered>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** kafkajs sends one every 3 s at most, whatever is asked of it. */
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

/** kafkajs starts it again by itself after most errors; the others end what this begins. */
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
      // What was not resolved comes again with the next fetch: nothing has to be thrown for that.
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
 * Handles a batch. At its end kafkajs commits what is resolved, which is handled without a gap from
 * the first one on; the rest comes again, and what of it was handled is then a duplicate.
 */
async function consumeBatch(parts: Parts, payload: BatchPayload): Promise<void> {
  const { batch, heartbeat, isRunning, isStale, resolveOffset } = payload;
  const { work } = parts;
  const handled: boolean[] = [];
  let resolved = 0;
  let isBroken = false;

  function tell(index: number, verdict: Verdict): void {
    if (verdict !== "handled") {
      // Before the next one of its key begins: that would overtake it.
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
    // The group is rebalanced, and another member may have the partition by now.
    isBroken = true;
    await unlessAbandoned(work, Promise.all(verdicts));
    throw error;
  }
}

/** Waits, and sends heartbeats meanwhile. Rejects when the group wants to be joined again. */
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
