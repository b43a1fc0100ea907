/**
 * From a delivery to what the broker is told: handled in the order of its key, tried again, given
 * up. What is specific to a broker is how a verdict is told, and stands in its own file.
 */
import { unlessAborted } from "../runtime/abort.ts";
import { describeError, InvalidMessageError } from "../runtime/errors.ts";
import { createLanes } from "../runtime/lanes.ts";
import type { Closed } from "./consumption.ts";
import type { DeliveredMessage } from "./message.ts";
import type { HandlerContext, Unhandled, WorkSettings } from "./options.ts";

/**
 * What to tell the broker. `handled`: the effect is committed, by this call or before, or the
 * message was parked. `stopped`: nothing was done, or nobody waits for it any more.
 */
export type Verdict = "handled" | "stopped" | Unhandled;

/** A message that the broker has handed over. */
export interface Delivery<Raw> {
  readonly raw: Raw;
  /** Reads it. Throws `MissingIdentityError`. */
  read(): DeliveredMessage;
  /** Keys are parted by it, such as topic and partition. */
  readonly within?: string | undefined;
  /**
   * True: one that would go back to the broker stays, and is tried again here after the pause,
   * because what is behind it would suffer from going back with it.
   */
  readonly stays?: boolean | undefined;
  /** True when nobody waits for a verdict: the broker has taken the message back. */
  isOver?(): boolean;
  /** Tells the broker; later messages of the key wait until it has resolved. Must not reject. */
  tell(verdict: Verdict): void | Promise<void>;
}

/** The handlers of one consumer. */
export interface Work<Raw> {
  /** Aborted when `close` begins: nothing more is to be taken. */
  readonly closing: AbortSignal;
  /** Aborted when handlers are waited for no longer. */
  readonly abandoned: AbortSignal;
  /**
   * Resolves to what the broker was told; never rejects. Those of a key are to be handed over in
   * their order.
   */
  handle(delivery: Delivery<Raw>): Promise<Verdict>;
  /** Resolves when no handler runs and every verdict is out, or `abandoned`. */
  drain(): Promise<Closed>;
}

export function createWork<Raw>(settings: WorkSettings<Raw>): Work<Raw> {
  const { clock, inbox, logger } = settings;
  const lanes = createLanes(settings.concurrency);
  const closing = new AbortController();
  const abandoned = new AbortController();
  const open = new Set<Promise<Verdict>>();

  /** Resolves when the transaction has committed. */
  async function handleOnce(message: DeliveredMessage, raw: Raw, called: () => void): Promise<void> {
    const handling = { message };
    const call = (tx: unknown): Promise<unknown> => {
      called();
      const context: HandlerContext<Raw, never> = { tx: tx as never, signal: abandoned.signal, raw };
      return Promise.resolve(settings.handler(message, context));
    };
    if (settings.transaction === undefined) await inbox.handle(inbox.database, handling, async (tx) => await call(tx));
    else await settings.transaction((tx) => inbox.handle<unknown, unknown>(tx, handling, async () => await call(tx)));
  }

  async function attempt(delivery: Delivery<Raw>, message: DeliveredMessage): Promise<Verdict> {
    const { type, key } = message;
    for (let attempts = 1; ; attempts += 1) {
      if (closing.signal.aborted || delivery.isOver?.() === true) return "stopped";
      let wasCalled = false;
      try {
        await handleOnce(message, delivery.raw, () => (wasCalled = true));
        return "handled";
      } catch (error) {
        const isLast = attempts >= settings.maxAttempts || isHopeless(error);
        if (isLast) {
          // A database that is away would make dead letters of all messages that come meanwhile.
          const unhandled = wasCalled || isHopeless(error) ? settings.unhandled : "redeliver";
          const verdict = await giveUp(delivery.raw, error, { type, key, attempts }, unhandled);
          if (!goesOn(delivery, verdict)) return verdict;
          attempts = 0;
          await clock.sleep(settings.pauseMs, closing.signal);
          continue;
        }
        logger.warn("a message was not handled and is tried again", {
          ...{ consumer: inbox.consumer, type, key, attempts, error },
        });
        await clock.sleep(settings.retryInMs(attempts), closing.signal);
      }
    }
  }

  async function giveUp(
    raw: Raw,
    error: unknown,
    about: Readonly<Record<string, unknown>>,
    unhandled = settings.unhandled,
  ): Promise<Verdict> {
    const fields = { consumer: inbox.consumer, ...about, error };
    if (typeof unhandled === "string") {
      logger.error("a message was not handled and goes back to the broker", { ...fields, as: unhandled });
      return unhandled;
    }
    try {
      await unhandled(raw, error);
    } catch (parking) {
      logger.error("a message was neither handled nor parked", { ...fields, parking: describeError(parking) });
      return "redeliver";
    }
    logger.warn("a message was not handled and is parked", fields);
    return "handled";
  }

  /** One without an identity, or that `orderBy` cannot read. */
  async function refuse(delivery: Delivery<Raw>, error: unknown): Promise<Verdict> {
    while (!closing.signal.aborted && delivery.isOver?.() !== true) {
      const verdict = await giveUp(delivery.raw, error, {});
      if (!goesOn(delivery, verdict)) return verdict;
      await clock.sleep(settings.pauseMs, closing.signal);
    }
    return "stopped";
  }

  function handle(delivery: Delivery<Raw>): Promise<Verdict> {
    let message: DeliveredMessage | undefined;
    let lane: string | undefined;
    let unreadable: unknown;
    try {
      message = delivery.read();
      const key = settings.orderBy(message);
      lane = key === undefined ? undefined : `${delivery.within ?? ""}\n${key}`;
    } catch (error) {
      message = undefined;
      unreadable = error;
    }
    const verdict = new Promise<Verdict>((resolve) => {
      lanes.add({ lane }, async () => {
        const reached = message === undefined ? await refuse(delivery, unreadable) : await attempt(delivery, message);
        await delivery.tell(reached);
        resolve(reached);
      });
    });
    open.add(verdict);
    void verdict.then(() => open.delete(verdict));
    return verdict;
  }

  async function drain(): Promise<Closed> {
    closing.abort();
    const timer = clock.setTimer(() => abandoned.abort(), settings.drainTimeoutMs);
    try {
      await unlessAborted(abandoned.signal, Promise.all(open), () => undefined);
      return { drained: true };
    } catch {
      logger.warn("handlers did not end in time; what they have under way comes again", {
        ...{ consumer: inbox.consumer, running: open.size, drainTimeoutMs: settings.drainTimeoutMs },
      });
      return { drained: false };
    } finally {
      timer.cancel();
    }
  }

  return { closing: closing.signal, abandoned: abandoned.signal, handle, drain };
}

function goesOn({ stays }: Delivery<unknown>, verdict: Verdict): boolean {
  return stays === true && verdict === "redeliver";
}

/** The same message fails each time that it comes. */
function isHopeless(error: unknown): boolean {
  return error instanceof InvalidMessageError;
}
