/**
 * Turns a delivery into a verdict: handled in the order of its key, retried, given up. Each
 * broker's own file sends the verdict.
 */
import { unlessAborted } from "../runtime/abort.ts";
import type { Timer } from "../runtime/clock.ts";
import { describeError, InvalidMessageError } from "../runtime/errors.ts";
import { withHandlerTimeout } from "../runtime/handler-timeout.ts";
import type { HandledEvent } from "../runtime/handling-reports.ts";
import { type Again, createLanes } from "../runtime/lanes.ts";
import { createRests, type Resting } from "../runtime/rests.ts";
import { inProcessSpan, loadTelemetry } from "../runtime/trace-context.ts";
import type { Closed } from "./consumption.ts";
import type { Delivery, Verdict } from "./delivery.ts";
import type { DeliveredMessage } from "./message.ts";
import type { HandlerContext, WorkSettings } from "./options.ts";

export type { Verdict } from "./delivery.ts";

/** `aside`: no verdict yet; it returns to its lane after the pause. Again: it continues then. */
type Reached = Verdict | "aside" | Again;

interface Tries extends Resting {
  attempts: number;
  /**
   * Calls of the handler that count; `attempts` restarts if the message stays after the last one.
   */
  calls: number;
  isHeld: boolean;
  hadItsTries: boolean;
}

export interface Work<Raw> {
  /** Aborted when `close` begins: no more messages are taken. */
  readonly closing: AbortSignal;
  /** Aborted when handlers are no longer awaited. */
  readonly abandoned: AbortSignal;
  /** Resolves to the verdict sent; never rejects. Messages of a key must be passed in order. */
  handle(delivery: Delivery<Raw>): Promise<Verdict>;
  /**
   * Resolves when nothing more arrives, no handler runs and every verdict is sent, or at
   * `abandoned`. `quiet`: resolves when nothing more arrives; default: at once.
   */
  drain(quiet?: Promise<unknown>): Promise<Closed>;
}

export function createWork<Raw>(settings: WorkSettings<Raw>): Work<Raw> {
  const { clock, inbox, logger, reports, source, system } = settings;
  const consumer = inbox?.consumer;
  const lanes = createLanes(settings.concurrency);
  const closing = new AbortController();
  const abandoned = new AbortController();
  const open = new Set<Promise<Verdict>>();
  const rests = createRests(clock, logger, { consumer });

  async function handleOnce(message: DeliveredMessage, raw: Raw, called: () => void): Promise<void> {
    const handling = { message };
    const { headers, id } = message;
    const about = { system, consumer: settings.consumer, headers, id, topic: message.topic ?? source };
    const call = (tx: unknown): Promise<unknown> => {
      called();
      const { handlerTimeoutMs: ms } = settings;
      const run = (signal: AbortSignal): unknown => {
        const context: HandlerContext<Raw, never> = { tx: tx as never, signal, raw };
        return inProcessSpan(about, () => settings.handler(message, context));
      };
      if (ms === undefined) return Promise.resolve(run(abandoned.signal));
      const { type, key } = message;
      const ended = (error: unknown): void => {
        const how = error === undefined ? "handled" : describeError(error);
        logger.warn("a handler ended after its time was over; what it did stays", { consumer, type, key, how });
      };
      const limit = { clock, ms, what: `${type}:${key}`, signal: abandoned.signal, ended };
      return withHandlerTimeout({ ...limit, waitsForEnd: transaction !== undefined }, run);
    };
    const loading = loadTelemetry();
    if (loading !== undefined) await loading;
    const { transaction } = settings;
    if (inbox === undefined) await (transaction === undefined ? call(undefined) : transaction(call));
    else if (transaction === undefined) await inbox.handle(inbox.database, handling, async (tx) => await call(tx));
    else await transaction((tx) => inbox.handle<unknown, unknown>(tx, handling, async () => await call(tx)));
  }

  function triedOnce(message: Partial<DeliveredMessage>, attempt: number, durationMs: number): HandledEvent {
    const { topic = source, id, type, key } = message;
    return { message: { topic, id, type, key }, attempt: Math.max(1, attempt), durationMs };
  }

  /** Settles as `once` does, and logs periodically until then; nothing else would show it. */
  async function watched(once: () => Promise<void>, about: Readonly<Record<string, unknown>>): Promise<void> {
    const beganMs = clock.monotonicMs();
    let nextMs = settings.warnAfterMs;
    let timer: Timer | undefined;
    const look = (): void => {
      const runningMs = Math.round(clock.monotonicMs() - beganMs);
      logger.warn("a message is being handled for long; its place is taken and its key waits", {
        consumer,
        ...about,
        runningMs,
      });
      timer = clock.setTimer(look, nextMs);
      nextMs *= 2;
    };
    if (nextMs < Number.POSITIVE_INFINITY) timer = clock.setTimer(look, nextMs);
    try {
      await once();
    } finally {
      timer?.cancel();
    }
  }

  async function attempt(delivery: Delivery<Raw>, message: DeliveredMessage, tries: Tries): Promise<Reached> {
    const { type, key } = message;
    for (;;) {
      if (isToStop(delivery, tries.hadItsTries)) return "stopped";
      const turn = rests.turn(type, () => isToStop(delivery, tries.hadItsTries));
      if (turn !== undefined) return { until: turn };
      tries.attempts += 1;
      let wasCalled = false;
      const beganMs = clock.monotonicMs();
      const tried = (): HandledEvent => triedOnce(message, tries.calls, clock.monotonicMs() - beganMs);
      try {
        const about = { type, key, attempts: tries.attempts };
        await watched(() => handleOnce(message, delivery.raw, () => (wasCalled = true)), about);
        rests.well(type);
        tries.calls += 1;
        if (wasCalled) reports.handled(tried());
        return "handled";
      } catch (error) {
        delivery.tried?.();
        const until = wasCalled ? restAfter(delivery, message, tries, error) : undefined;
        if (until !== undefined) return { until };
        if (wasCalled) tries.calls += 1;
        // Tries that did not reach the handler do not count.
        if (tries.isHeld && wasCalled) tries.attempts = 1;
        tries.isHeld &&= !wasCalled;
        const { attempts } = tries;
        const isLast = attempts >= settings.maxAttempts || isHopeless(error);
        if (isLast) {
          const isAtFault = wasCalled || isHopeless(error);
          if (!isAtFault && delivery.stays !== "never") {
            if (!tries.isHeld)
              logger.warn("a message cannot be handed to its handler and stays here, to be tried again", {
                consumer,
                type,
                key,
                attempts,
                error,
              });
            tries.isHeld = true;
            tries.hadItsTries = closing.signal.aborted;
            await clock.sleep(settings.pauseMs, closing.signal);
            continue;
          }
          // An unavailable database must not turn all arriving messages into dead letters.
          const unhandled = isAtFault ? settings.unhandled : "redeliver";
          const verdict = await giveUp(delivery, error, { type, key, attempts }, unhandled);
          if (isAtFault) reports.failed({ ...tried(), error, isLast: verdict !== "redeliver" });
          if (!goesOn(delivery, verdict)) return verdict;
          if (stepsAside(delivery)) return "aside";
          tries.attempts = 0;
          tries.hadItsTries = closing.signal.aborted;
          await clock.sleep(settings.pauseMs, closing.signal);
          continue;
        }
        if (wasCalled) reports.failed({ ...tried(), error, isLast: false });
        logger.warn("a message was not handled and is tried again", {
          consumer,
          type,
          key,
          attempts,
          error,
        });
        const { signal } = delivery.isLast === true ? abandoned : closing;
        await clock.sleep(settings.retryInMs(attempts), signal);
      }
    }
  }

  /** A service of the handler is unavailable, so the try does not count. Undefined: it counts. */
  function restAfter(
    delivery: Delivery<Raw>,
    { type, topic = source }: DeliveredMessage,
    tries: Tries,
    error: unknown,
  ): Promise<unknown> | undefined {
    if (delivery.stays === "never") return undefined;
    if (!settings.isUnavailable(error)) {
      rests.well(type);
      return undefined;
    }
    const until = rests.away(tries, type, error);
    if (until === undefined) return undefined;
    reports.away(topic);
    tries.attempts -= 1;
    tries.hadItsTries = closing.signal.aborted;
    return until;
  }

  async function giveUp(
    delivery: Delivery<Raw>,
    error: unknown,
    about: Readonly<Record<string, unknown>>,
    unhandled = settings.unhandled,
  ): Promise<Verdict> {
    const fields = { consumer, ...about, error };
    if (typeof unhandled === "string") {
      if (goesOn(delivery, unhandled))
        logger.error("a message was not handled and stays here, to be tried again", fields);
      else logger.error("a message was not handled and goes back to the broker", { ...fields, as: unhandled });
      return unhandled;
    }
    try {
      await unhandled(delivery.raw, error);
    } catch (parking) {
      logger.error("a message was neither handled nor parked", { ...fields, parking: describeError(parking) });
      return "redeliver";
    }
    logger.warn("a message was not handled and is parked", fields);
    return "handled";
  }

  async function refuse(delivery: Delivery<Raw>, error: unknown): Promise<Reached> {
    let hadItsTries = false;
    for (let times = 1; !isToStop(delivery, hadItsTries); times += 1) {
      const verdict = await giveUp(delivery, error, {});
      reports.failed({ ...triedOnce({}, times, 0), error, isLast: verdict !== "redeliver" });
      delivery.tried?.();
      if (!goesOn(delivery, verdict)) return verdict;
      if (stepsAside(delivery)) return "aside";
      hadItsTries = closing.signal.aborted;
      await clock.sleep(settings.pauseMs, closing.signal);
    }
    return "stopped";
  }

  /** During a close no other message needs the place. */
  function stepsAside({ stays }: Delivery<Raw>): boolean {
    return stays === "aside" && !closing.signal.aborted;
  }

  /** `hadItsTries`: all of them, the last one during the close. */
  function isToStop(delivery: Delivery<Raw>, hadItsTries: boolean): boolean {
    if (delivery.isOver?.() === true || abandoned.signal.aborted) return true;
    return closing.signal.aborted && (delivery.isLast !== true || hadItsTries);
  }

  async function tell(
    delivery: Delivery<Raw>,
    verdict: Verdict,
    { type, key }: Partial<DeliveredMessage>,
  ): Promise<void> {
    try {
      await delivery.tell(verdict);
    } catch (error) {
      logger.warn("the broker did not take the answer to a message, which comes again", {
        consumer,
        type,
        key,
        answer: verdict,
        error,
      });
    }
  }

  function handle(delivery: Delivery<Raw>): Promise<Verdict> {
    let message: DeliveredMessage | undefined;
    let lane: string | undefined;
    let unreadable: unknown;
    try {
      message = delivery.read(settings.identity?.(delivery.raw));
      const key = settings.orderBy(message);
      lane = key === undefined ? undefined : `${delivery.within ?? ""}\n${key}`;
    } catch (error) {
      message = undefined;
      unreadable = error;
    }
    const tries: Tries = { attempts: 0, calls: 0, isHeld: false, hadItsTries: false };
    const verdict = new Promise<Verdict>((resolve) => {
      const begin = (): void =>
        lanes.add({ lane }, async () => {
          const reached =
            message === undefined ? await refuse(delivery, unreadable) : await attempt(delivery, message, tries);
          if (typeof reached === "object") return reached;
          if (reached === "aside") {
            void clock.sleep(settings.pauseMs, closing.signal).then(begin);
            return undefined;
          }
          await tell(delivery, reached, message ?? {});
          resolve(reached);
          return undefined;
        });
      begin();
    });
    open.add(verdict);
    void verdict.then(() => open.delete(verdict));
    return verdict;
  }

  async function drain(quiet: Promise<unknown> = Promise.resolve()): Promise<Closed> {
    closing.abort();
    rests.close();
    const timer = clock.setTimer(() => abandoned.abort(), settings.drainTimeoutMs);
    try {
      const settled = quiet.then(() => Promise.all(open));
      await unlessAborted(abandoned.signal, settled, () => undefined);
      return { drained: true };
    } catch {
      logger.warn("handlers did not end in time; what they have under way comes again", {
        consumer,
        running: open.size,
        drainTimeoutMs: settings.drainTimeoutMs,
      });
      return { drained: false };
    } finally {
      timer.cancel();
    }
  }

  return { closing: closing.signal, abandoned: abandoned.signal, handle, drain };
}

function goesOn({ stays }: Delivery<unknown>, verdict: Verdict): boolean {
  return (stays === "always" || stays === "aside") && verdict === "redeliver";
}

/** The message would fail on every delivery. */
function isHopeless(error: unknown): boolean {
  return error instanceof InvalidMessageError;
}
