/** Pulls one at a time, for as many messages as have room, on our own subscription. */
import { onAbort } from "../../runtime/abort.ts";
import { retryPauseMs } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import { closeQuietly } from "../../runtime/deadline.ts";
import { describeError } from "../../runtime/errors.ts";
import type { Logger } from "../../runtime/logger.ts";
import { createUnderway } from "../underway.ts";
import type { ConsumerAddress, NatsConsumeConnection } from "./connection.ts";
import type { WireMessage } from "./message.ts";

interface Parts {
  readonly connection: NatsConsumeConnection;
  readonly address: ConsumerAddress;
  readonly inbox: string;
  readonly room: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly closing: AbortSignal;
  readonly take: (message: WireMessage) => Promise<unknown>;
}

export interface Pulling {
  /** Resolves when nothing more arrives: after `closing` or the end of the connection. */
  readonly quiet: Promise<void>;
  readonly over: Promise<unknown>;
}

/** How long the server keeps a pull open. */
const EXPIRES_MS = 30_000;
/** Interval at which an idle server confirms that it still has the pull. */
const HEARTBEAT_MS = 1_000;
/** A server that forgot the pull, for example by a restart, stays silent. */
const SILENCE_MS = 3 * HEARTBEAT_MS;
const NANOS = 1_000_000;

const STATUS_HEARTBEAT = 100;
const STATUS_EMPTY = 404;
const STATUS_EXPIRED = 408;
const NO_TROUBLE = /batch completed|exceeded maxackpending/i;

export function startPulling(parts: Parts): Pulling {
  const { address, clock, closing, connection, inbox, logger } = parts;
  const subject = `${address.apiPrefix}.CONSUMER.MSG.NEXT.${address.stream}.${address.durable}`;
  let pulls = 0;
  let asked = 0;
  const underway = createUnderway(parts.room);
  let heardMs = clock.monotonicMs();
  let failures = 0;
  let reason: string | undefined;
  let isOver = false;

  function receive(error: Error | null, message: WireMessage): void {
    heardMs = clock.monotonicMs();
    if (error !== null) {
      fail(describeError(error));
    } else if (message.subject.startsWith(`${inbox}.`)) {
      // Otherwise of an earlier, abandoned pull.
      if (message.subject === `${inbox}.${pulls}`) hear(message);
    } else {
      asked -= 1;
      failures = 0;
      underway.add(parts.take(message), message.data.length);
    }
    underway.wake();
  }

  function hear({ headers }: WireMessage): void {
    const { code = 0, description = "" } = headers ?? {};
    if (code === STATUS_HEARTBEAT) {
      failures = 0;
      return;
    }
    if (code === STATUS_EMPTY || code === STATUS_EXPIRED || NO_TROUBLE.test(description)) asked = 0;
    else
      fail(
        code === 503 ? "nobody answers: is the stream, the consumer or its leader there?" : `${code} ${description}`,
      );
  }

  function fail(why: string): void {
    asked = 0;
    reason = why;
  }

  function pull(): void {
    pulls += 1;
    asked = underway.room;
    heardMs = clock.monotonicMs();
    const request = { batch: asked, expires: EXPIRES_MS * NANOS, idle_heartbeat: HEARTBEAT_MS * NANOS };
    try {
      connection.publish(subject, JSON.stringify(request), { reply: `${inbox}.${pulls}` });
    } catch (error) {
      fail(describeError(error));
    }
  }

  async function afterTrouble(why: string): Promise<void> {
    failures += 1;
    reason = undefined;
    if (failures === 1) {
      const what = `NATS consumer ${address.durable} of the stream ${address.stream}`;
      logger.warn("a consumer cannot receive; it goes on trying", { what, reason: why });
    }
    await clock.sleep(retryPauseMs(failures), closing);
  }

  async function run(): Promise<void> {
    const subscription = connection.subscribe(`${inbox}.*`, { callback: receive as never });
    while (!closing.aborted && !isOver) {
      if (asked > 0 && clock.monotonicMs() - heardMs >= SILENCE_MS)
        fail(`no word from the server for ${SILENCE_MS} ms`);
      if (reason !== undefined) await afterTrouble(reason);
      if (closing.aborted || isOver) break;
      if (asked <= 0 && underway.room > 0) pull();
      await clock.sleep(HEARTBEAT_MS, underway.change());
    }
    // The answer means that the server sends nothing more; earlier messages still arrive.
    await closeQuietly(subscription.drain());
  }

  const forget = onAbort(closing, underway.wake);
  void connection.closed().then(() => {
    isOver = true;
    underway.wake();
  });
  const quiet = run().finally(forget);
  return { quiet, over: quiet.then(() => underway.none()) };
}
