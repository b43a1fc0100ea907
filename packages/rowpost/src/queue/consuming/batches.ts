/**
 * Handlers of many messages. Each message of a batch runs as a handler that waits for the batch's
 * answer, so order, attempts, records, rests and metrics work as usual.
 */
import { refuseUnknown } from "../../runtime/check-options.ts";
import type { Timer } from "../../runtime/clock.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { createLanes } from "../../runtime/lanes.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import type { Consumer } from "./consumer.ts";
import { inTime } from "./deliver.ts";
import type { Lanes } from "./lanes.ts";
import type { ConsumedMessage } from "./message.ts";
import {
  CONSUME_OPTIONS,
  type ConsumerSettings,
  consumerSettings,
  MOST_BATCH,
  type QueueConsumeOptions,
  type QueueHandlerContext,
  type Together,
} from "./options.ts";

/** Answer of a batch that failed in part. */
export interface BatchOutcome {
  /** These count as a failed attempt; the others are consumed. */
  readonly failed: readonly { readonly id: string; readonly error: unknown }[];
}

/** Type of {@link ConsumeBatchesOptions.handler}. */
export type BatchHandler = (messages: readonly ConsumedMessage[], context: QueueHandlerContext) => unknown;

/** Options of `queue.consumeBatches`: those of `queue.consume` and two more. */
export interface ConsumeBatchesOptions extends Omit<QueueConsumeOptions, "handler"> {
  /**
   * Called with messages of one partition in id order; without `transactional` at most one of each
   * ordering key. If it returns nothing, or a promise of nothing, all are consumed; a {@link
   * BatchOutcome} names the failed ones. A throw, or any other answer, is a failed attempt of each.
   */
  readonly handler: BatchHandler;
  /** Most messages in a batch, 1 to 10,000. Default 100. */
  readonly size?: number | undefined;
  /** How long a batch waits to fill up, from its first message on, in ms. Default 0. */
  readonly waitMs?: number | undefined;
}

interface Batches extends Together, Lanes {
  readonly handle: ConsumerSettings["handler"];
}

interface Gathering {
  readonly ready: (() => Promise<unknown>)[];
  isDue: boolean;
  readonly timer: Timer;
}

interface Call {
  readonly message: ConsumedMessage;
  readonly context: QueueHandlerContext;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const LONGEST_WAIT_MS = 60_000;

/** Checks the options before any SQL. */
export async function startBatches(
  join: (settings: ConsumerSettings, lanes: Lanes) => Promise<Consumer>,
  options: ConsumeBatchesOptions,
): Promise<Consumer> {
  refuseUnknown("consumeBatches", options, [...CONSUME_OPTIONS, "size", "waitMs"]);
  const { handler, size = 100, waitMs = 0, ...rest } = options;
  if (typeof handler !== "function") {
    throw new ConfigurationError("consumeBatches takes a handler: async (messages, { tx, signal }) => { … }");
  }
  wholeNumber("consumeBatches: size", size, 1, MOST_BATCH);
  wholeNumber("consumeBatches: waitMs", waitMs, 0, LONGEST_WAIT_MS);
  const settings = consumerSettings({ ...rest, handler: () => undefined });
  const batches = createBatches(settings, { handler, size, waitMs });
  const batchSize = Math.max(settings.batchSize, size);
  // The limit applies to a batch, not to each message.
  const own = { handler: batches.handle, handlerTimeoutMs: undefined, batches, batchSize };
  return await join({ ...settings, ...own }, batches);
}

function createBatches(
  settings: ConsumerSettings,
  { handler, size, waitMs }: Required<Pick<ConsumeBatchesOptions, "handler">> & { size: number; waitMs: number },
): Batches {
  const { clock, concurrency, handlerTimeoutMs } = settings;
  // Only keeps the order of keys; concurrency counts batches.
  const lanes = createLanes(Number.POSITIVE_INFINITY);
  /** By partition, in order of turns. */
  const gathering = new Map<number, Gathering>();
  let running = 0;
  let isClosed = false;
  let open: Call[] | undefined;

  function gather(partition: number, isAlone: boolean, begin: Gathering["ready"][number]): void {
    let own = gathering.get(partition);
    if (own === undefined) {
      const timer = clock.setTimer(() => due(made), isClosed ? 0 : waitMs);
      const made: Gathering = { ready: [], isDue: false, timer };
      gathering.set(partition, made);
      own = made;
    }
    own.ready.push(begin);
    if (isAlone) own.isDue = true;
    beginReady();
  }

  function due(own: Gathering): void {
    own.isDue = true;
    beginReady();
  }

  function beginReady(): void {
    for (const [partition, own] of gathering) {
      if (running >= concurrency) return;
      if (!own.isDue && own.ready.length < size) continue;
      const batch = own.ready.splice(0, size);
      // The remainder waits behind the other partitions.
      gathering.delete(partition);
      if (own.ready.length > 0) gathering.set(partition, own);
      else own.timer.cancel();
      void run(batch);
    }
  }

  async function run(batch: Gathering["ready"]): Promise<void> {
    running += 1;
    await Promise.all(together(() => batch.map((begin) => begin())));
    running -= 1;
    beginReady();
  }

  function together<Result>(begin: () => Result): Result {
    const calls: Call[] = [];
    open = calls;
    const begun = begin();
    open = undefined;
    if (calls.length > 0) void answer(calls);
    return begun;
  }

  async function answer(unordered: readonly Call[]): Promise<void> {
    // A key's later messages and redeliveries join out of id order.
    const calls = unordered.toSorted((left, right) => compareIds(left.message.id, right.message.id));
    try {
      const failed = await failuresOf(calls);
      for (const { message, resolve, reject } of calls) {
        if (failed.has(message.id)) reject(failed.get(message.id));
        else resolve();
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }

  async function failuresOf(calls: readonly Call[]): Promise<ReadonlyMap<string, unknown>> {
    const [{ message, context }] = calls as readonly [Call];
    const messages = calls.map((call) => call.message);
    const call = (signal: AbortSignal): unknown => handler(messages, { tx: context.tx, signal });
    if (handlerTimeoutMs === undefined) return checked(messages, await call(context.signal));
    const id = calls.length === 1 ? message.id : `${message.id} and ${calls.length - 1} more`;
    return checked(messages, await inTime(settings, { id, key: message.key }, handlerTimeoutMs, context.signal, call));
  }

  return {
    size,
    waitMs,
    together,
    add({ partition, lane, isAlone = false }, task) {
      lanes.add({ lane }, () => new Promise((resolve) => gather(partition, isAlone, () => task().then(resolve))));
    },
    handle(message, context) {
      return new Promise<void>((resolve, reject) => {
        const call: Call = { message, context, resolve, reject };
        if (open === undefined) void answer([call]);
        else open.push(call);
      });
    },
    close() {
      isClosed = true;
      for (const own of gathering.values()) {
        own.timer.cancel();
        due(own);
      }
    },
  };
}

/** An unknown answer must not pass for success. */
function checked(messages: readonly ConsumedMessage[], answer: unknown): ReadonlyMap<string, unknown> {
  if (answer === undefined) return new Map();
  const { failed } = (answer ?? {}) as Partial<BatchOutcome>;
  if (!Array.isArray(failed)) {
    throw new ConfigurationError(
      "the handler of a batch returns nothing when all of it is consumed, else { failed: [{ id, error }] }",
    );
  }
  const ids = new Set(messages.map(({ id }) => id));
  for (const { id } of failed as BatchOutcome["failed"]) {
    if (!ids.has(id)) throw new ConfigurationError(`the handler of a batch names ${id} as failed, which is not in it`);
  }
  return new Map((failed as BatchOutcome["failed"]).map(({ id, error }) => [id, error]));
}
