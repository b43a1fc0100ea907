/** Kafka through @platformatic/kafka: one stream of messages, committed behind what is handled. */
import { onAbort, untilAborted } from "../../runtime/abort.ts";
import type { Clock } from "../../runtime/clock.ts";
import { closeQuietly } from "../../runtime/deadline.ts";
import type { Logger } from "../../runtime/logger.ts";
import { type Consumption, consumptionOf } from "../consumption.ts";
import { type Opened, reopening } from "../reopening.ts";
import { createUnderway } from "../underway.ts";
import type { Work } from "../work.ts";
import { type KafkaDelivered, kafkaMessage } from "./record.ts";

/** A `Consumer` of @platformatic/kafka: what is called of it. */
export interface PlatformaticConsumer {
  /** Called once, and again when its stream has ended. */
  consume(options: never): Promise<unknown>;
  /** Called after messages are handled. */
  commit(options: never): Promise<void>;
}

interface Message extends KafkaDelivered {
  readonly offset: bigint;
  readonly leaderEpoch: number;
}

interface Stream extends AsyncIterable<Message> {
  close(): Promise<void>;
}

interface Client {
  consume(options: {
    readonly topics: readonly string[];
    readonly mode: "committed";
    readonly fallbackMode: "earliest" | "latest";
    readonly autocommit: false;
    readonly highWaterMark: number;
  }): Promise<Stream>;
  commit(options: { readonly offsets: readonly Place[] }): Promise<void>;
}

interface Place {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly leaderEpoch: number;
}

interface Parts {
  readonly consumer: PlatformaticConsumer;
  readonly topics: readonly string[];
  readonly fromBeginning: boolean;
  readonly room: number;
  readonly work: Work<KafkaDelivered>;
  readonly clock: Clock;
  readonly logger: Logger;
}

export async function consumePlatformatic(parts: Parts): Promise<Consumption> {
  const { clock, logger, topics, work } = parts;
  const client = parts.consumer as unknown as Client;
  const offsets = createOffsets(client, logger, topics);

  async function open(): Promise<Opened & { readonly stream: Stream }> {
    const stream = await client.consume({
      topics: [...topics],
      mode: "committed",
      fallbackMode: parts.fromBeginning ? "earliest" : "latest",
      autocommit: false,
      highWaterMark: parts.room,
    });
    const ended = read(parts, stream, offsets).catch((error: unknown) => error);
    return { stream, ended };
  }

  const links = await reopening({
    open,
    closing: work.closing,
    clock,
    logger,
    what: `Kafka topics ${topics.join(", ")}`,
    discard: ({ stream }) => closeQuietly(stream.close()),
  });
  return consumptionOf(async () => {
    const closed = await work.drain();
    await closeQuietly(offsets.flush(), COMMIT_MS);
    await closeQuietly(links.current().stream.close());
    return closed;
  });
}

const COMMIT_MS = 5_000;

async function read({ room, work }: Parts, stream: Stream, offsets: Offsets): Promise<void> {
  const underway = createUnderway(room);
  const forget = onAbort(work.closing, () => {
    underway.wake();
    void closeQuietly(stream.close());
  });
  try {
    for await (const raw of stream) {
      if (work.closing.aborted) return;
      offsets.begin(raw);
      const settled = work.handle({
        raw,
        read: (identity) => kafkaMessage(raw, identity),
        within: `${raw.topic}\n${raw.partition}`,
        // The client cannot seek back to it.
        stays: "always",
        tell(verdict) {
          if (verdict === "handled") offsets.done(raw);
        },
      });
      underway.add(settled, raw.value?.length ?? 0);
      // The client sends heartbeats meanwhile.
      while (underway.room === 0 && !work.closing.aborted) await untilAborted(underway.change());
    }
  } finally {
    forget();
  }
}

interface Offsets {
  begin(message: Message): void;
  /** Schedules the commit of messages handled without a gap from the first on. */
  done(message: Message): void;
  flush(): Promise<void>;
}

/**
 * After a rebalance the client delivers uncommitted messages again, behind those it still holds, so
 * an offset may be under way twice. The commit stays below all of them: it may go back, and the
 * inbox recognizes the repeated messages.
 */
function createOffsets(client: Client, logger: Logger, topics: readonly string[]): Offsets {
  interface Partition {
    last: Message;
    readonly open: Map<bigint, number>;
  }
  const partitions = new Map<string, Partition>();
  const dirty = new Set<Partition>();
  let committing: Promise<void> | undefined;
  let isTold = false;

  const nameOf = ({ partition, topic }: Message): string => `${topic}\n${partition}`;

  function placeOf({ last, open }: Partition): Place {
    const { leaderEpoch, partition, topic } = last;
    let offset = last.offset + 1n;
    for (const each of open.keys()) if (each < offset) offset = each;
    return { topic, partition, leaderEpoch, offset };
  }

  async function commit(): Promise<void> {
    while (dirty.size > 0) {
      const offsets = [...dirty].map(placeOf);
      dirty.clear();
      try {
        await client.commit({ offsets });
        isTold = false;
      } catch (error) {
        // During a rebalance: the next commit covers it, or another member handles it again.
        if (!isTold) logger.warn("offsets were not committed; what they cover may come again", { topics, error });
        isTold = true;
      }
    }
  }

  function flush(): Promise<void> {
    committing ??= commit().finally(() => {
      committing = undefined;
    });
    return committing;
  }

  return {
    begin(message) {
      const partition = partitions.get(nameOf(message)) ?? { last: message, open: new Map<bigint, number>() };
      partitions.set(nameOf(message), partition);
      partition.last = message;
      partition.open.set(message.offset, (partition.open.get(message.offset) ?? 0) + 1);
    },
    done(message) {
      const partition = partitions.get(nameOf(message));
      if (partition === undefined) return;
      const count = (partition.open.get(message.offset) ?? 1) - 1;
      if (count > 0) partition.open.set(message.offset, count);
      else partition.open.delete(message.offset);
      dirty.add(partition);
      void flush();
    },
    flush,
  };
}
