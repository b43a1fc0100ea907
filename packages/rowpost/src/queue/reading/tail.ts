/** Follows a topic without a group, progress or records. */
import type { QueueDatabase } from "../../databases/database.ts";
import { checkQueueId } from "../../message/queue-errors.ts";
import { queueIdOfDate } from "../../message/queue-id.ts";
import { createPollPace } from "../../relay/pacing/poll-pace.ts";
import { createWakeUp } from "../../relay/pacing/wake-up.ts";
import { linkSignals } from "../../runtime/abort.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { systemClock } from "../../runtime/clock.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { ConfigurationError, UnknownTopicError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import { type TailedMessage, tailedMessage } from "../consuming/message.ts";
import type { TopicStore } from "../store.ts";
import { checkTopic } from "../topics/names.ts";
import { createReader, idAfter, type Reader, type ReadStore } from "./reader.ts";

/** Options of `queue.tail`. */
export interface TailOptions {
  /** Topic to follow; it must exist. */
  readonly topic: string;
  /**
   * Where to begin. `end` (default): messages appended from now on; `start`: everything kept; an id
   * or an instant: messages appended from there on.
   */
  readonly from?: "start" | "end" | { readonly id: string } | { readonly at: Date } | undefined;
  /** Ends after this many messages. Default: never. */
  readonly limit?: number | undefined;
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined;
}

export interface TailParts {
  readonly store: ReadStore;
  readonly topics: Pick<TopicStore, "months">;
  readonly database: Pick<QueueDatabase, "doorbell" | "listen">;
}

const PAGE = 200;

const KINDS: OptionKinds<TailOptions> = { topic: "any", from: "any", limit: "number", signal: "object" };

/** Throws `ConfigurationError`, `InvalidIdError`, `InvalidNameError`. */
export function checkedTail(options: TailOptions): TailOptions {
  checkOptions("tail", options, KINDS);
  checkTopic(options.topic);
  const { from = "end", limit = 1 } = options;
  wholeNumber("tail: limit", limit, 1);
  firstId(from);
  return options;
}

/** Closes the store at the end. */
export async function* tail(
  options: TailOptions,
  { store, topics, database }: TailParts,
): AsyncGenerator<TailedMessage> {
  const { topic, from = "end", limit = Number.POSITIVE_INFINITY } = options;
  const wakeUp = createWakeUp(systemClock);
  const pace = createPollPace({ minMs: 5, maxMs: 100 }, systemClock);
  const readers = new Map<number, Reader>();
  const start = firstId(from);
  const listening = await database.listen();
  // The wake-up keeps following the signal between waits.
  const link = linkSignals(options.signal);
  const { signal } = link;
  const unsubscribe = database.doorbell.subscribe(() => wakeUp.ring());
  let yielded = 0;
  try {
    while (!signal.aborted) {
      const rung = wakeUp.count;
      const { lastIds } = await store.counters();
      if (lastIds.size === 0) throw new UnknownTopicError(topic);
      const isFirst = readers.size === 0;
      let full = false;
      const page = [];
      for (const [partition, lastId] of lastIds) {
        const fromId = start ?? (isFirst ? idAfter(lastId) : "0");
        const reader =
          readers.get(partition) ?? createReader({ store, partition, fromId, months: () => topics.months(topic) });
        readers.set(partition, reader);
        const messages = await reader.read(lastId, PAGE);
        if (messages.length > 0) full = true;
        page.push(...messages);
      }
      for (const message of page.sort((left, right) => compareIds(left.id, right.id))) {
        if (signal.aborted) return;
        yield tailedMessage(topic, message);
        yielded += 1;
        if (yielded >= limit) return;
      }
      if (full) pace.found();
      else await wakeUp.wait({ sinceCount: rung, ms: pace.nextWaitMs(), signal });
    }
  } finally {
    link.release();
    unsubscribe();
    await listening?.close();
    await store.close();
  }
}

/** Undefined: after the existing messages. */
function firstId(from: NonNullable<TailOptions["from"]>): string | undefined {
  if (from === "end") return undefined;
  if (from === "start") return "0";
  if (typeof from === "object" && from !== null) {
    if ("id" in from) return checkQueueId("from.id", from.id);
    const id = queueIdOfDate(from.at);
    if (id !== undefined) return id;
  }
  throw new ConfigurationError(
    'from must be "start", "end", { id } with the id of a message as text, or { at } with a Date',
  );
}
