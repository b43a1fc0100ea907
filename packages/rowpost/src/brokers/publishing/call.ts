/**
 * One publish call: what goes when, and what becomes of each message. All adapters publish through
 * here; what is theirs is how a load is handed over and what the server's answer means.
 *
 * What holds in every adapter, beside the contract in `broker.ts`:
 *
 * - A **load** is what is handed over at once: one message, or those of one request. A **lane** is
 *   loads that go one after another, each when the one before it has its outcome; lanes go side by
 *   side, as far as the window has room. Messages of one ordering key are in one lane.
 * - Behind a failed message of a key nothing is handed over: what follows is `notStarted`, whatever
 *   the failure was. One exception: what was handed over in the same load as an `unknown` one is
 *   `unknown` as well, since it may be stored.
 * - A key that goes to several topics keeps its order too (`turns.ts`).
 * - A failure of scope `connection` is true of everything that was not handed over yet: it gets the
 *   same failure, and nothing more is tried in this call. One of scope `destination` is true of the
 *   rest of its destination. So a connection that breaks before a message's turn is `connection`
 *   (or the message goes out on the next connection, where the adapter opens one), never
 *   `notStarted`.
 * - After the deadline, and after `close`, nothing is handed over. What is under way is `unknown`
 *   unless the adapter knows better; the rest is `notStarted`. A call that waits for its connection
 *   when its deadline comes fails with `connection`, so that the relay learns of it (Redis, NATS,
 *   RabbitMQ by its own timeout; RocketMQ and Kafka ask about their topics first, in a time of
 *   their own, and a call that ends before the answer was not started).
 * - A call that is made after `close` fails with `connection`, code `CLOSED`.
 * - What an adapter throws while it hands over ends that load, `unknown`, and no other.
 *
 * No promise is made for a message: an outcome comes by `settle`.
 */
import { describeError } from "../../runtime/errors.ts";
import type { PublishFailed, PublishNotStarted, PublishResult } from "../broker.ts";
import type { AbortScope, Ending } from "./abort-scope.ts";
import { failed } from "./failures.ts";
import { createResults, type Placed } from "./results.ts";
import type { Window } from "./window.ts";

/** Messages handed over together, and the next load of their lane. */
export interface Load<Item extends Placed> {
  /** The unit that shares the window and can be away: the topic or the endpoint. */
  readonly destination: string;
  items: readonly Item[];
  /** Approximate bytes on the wire. */
  readonly bytes: number;
  next: Load<Item> | undefined;
}

export interface LoadFailure extends PublishFailed {
  /** One message of the load may be the cause: sent in halves, the others get through. */
  readonly divisible?: boolean | undefined;
}

/** The receipt of a message, or why it has none. */
export type Outcome = string | LoadFailure | PublishNotStarted;

/** The load was not handed over and waits for another turn. */
export const AGAIN: unique symbol = Symbol("again");

/** Undefined when it was handed over or already has its outcome. */
export type Handed = LoadFailure | typeof AGAIN | undefined;

export interface Carrier<Item extends Placed> {
  /**
   * Hands the load over, to `settle` it later; returns the failure, or `AGAIN` and calls `retry`
   * when it can.
   */
  hand(load: Load<Item>, retry: () => void): Handed;
  /**
   * The call ended with this load in flight. Without this method the adapter settles it soon after.
   */
  leave?(load: Load<Item>, ending: Ending): LoadFailure;
}

export interface Call<Item extends Placed> {
  start(first: Load<Item>): void;
  /** One outcome for all messages, or one for each. Ignored once the call has left the load. */
  readonly settle: (load: Load<Item>, outcome: Outcome | readonly Outcome[] | typeof AGAIN) => void;
  /** Like `settle`, with the result of the work. A rejection is a bug in the adapter. */
  settleBy(load: Load<Item>, work: Promise<Outcome | readonly Outcome[] | typeof AGAIN>): void;
  /** The connection accepts nothing more: messages not yet handed over fail now. */
  breakOff(failure: PublishFailed): void;
  refuse(placed: Placed, destination: string, failure: PublishFailed): void;
  readonly done: Promise<PublishResult[]>;
}

interface Options<Item extends Placed> {
  readonly count: number;
  readonly scope: AbortScope;
  readonly window: Window;
  readonly carrier: (call: Call<Item>) => Carrier<Item>;
}

interface Queue<Item extends Placed> {
  readonly destination: string;
  ready: Load<Item>[];
  position: number;
  /** Waits for room in the window. */
  isWaiting: boolean;
  isPumping: boolean;
  isAsked: boolean;
  readonly retry: () => void;
  readonly onRoom: () => void;
}

export function createCall<Item extends Placed>({
  count,
  scope,
  window,
  carrier: carrierOf,
}: Options<Item>): Call<Item> {
  const results = createResults(count);
  const queues = new Map<string, Queue<Item>>();
  const underWay = new Set<Load<Item>>();
  /**
   * They block later messages of their key and get their results last: one before them may fail.
   */
  const refused: { placed: Placed; destination: string; failure: PublishFailed }[] = [];
  let resolveDone: (results: PublishResult[]) => void = () => undefined;
  const done = new Promise<PublishResult[]>((resolve) => {
    resolveDone = resolve;
  });
  let isDone = false;

  function queueOf(destination: string): Queue<Item> {
    const known = queues.get(destination);
    if (known !== undefined) return known;
    const queue: Queue<Item> = {
      destination,
      ready: [],
      position: 0,
      isWaiting: false,
      isPumping: false,
      isAsked: false,
      retry: () => pump(queue),
      onRoom() {
        queue.isWaiting = false;
        pump(queue);
      },
    };
    queues.set(destination, queue);
    return queue;
  }

  /** Hands over loads as far as there is room. */
  function pump(queue: Queue<Item>): void {
    queue.isAsked = true;
    if (queue.isPumping || queue.isWaiting) return;
    queue.isPumping = true;
    while (queue.isAsked && !queue.isWaiting) {
      queue.isAsked = false;
      let load = queue.ready[queue.position];
      while (load !== undefined && !scope.aborted && offer(queue, load)) load = queue.ready[queue.position];
    }
    queue.isPumping = false;
    if (queue.position === queue.ready.length && queue.position > 0) {
      queue.ready = [];
      queue.position = 0;
    }
    finishWhenDone();
  }

  /** Hands over or fails the next load of a queue. False if it has to wait. */
  function offer(queue: Queue<Item>, load: Load<Item>): boolean {
    const { destination } = queue;
    if (!mayGo(load)) {
      queue.position += 1;
      advance(queue, load);
      return true;
    }
    if (!window.take(destination, load.bytes)) {
      queue.isWaiting = true;
      window.onRoom(destination, load.bytes, queue.onRoom);
      return false;
    }
    queue.position += 1;
    underWay.add(load);
    const answer = handed(queue, load);
    if (answer === AGAIN) {
      // Still the same position, because a queue hands over one load at a time.
      queue.position -= 1;
      underWay.delete(load);
      window.giveBack(destination, load.bytes);
      return false;
    }
    if (typeof answer === "object") settle(load, answer);
    return true;
  }

  function handed(queue: Queue<Item>, load: Load<Item>): Handed {
    try {
      return carrier.hand(load, queue.retry);
    } catch (error) {
      return faultOf(error);
    }
  }

  /** False if none of its messages may go any more; then all have their results. */
  function mayGo(load: Load<Item>): boolean {
    const { destination, items } = load;
    const known = results.awayFor(destination);
    if (known !== undefined) {
      for (const item of items) results.fail(item, destination, known);
      return false;
    }
    if (!items.some(results.isBehind)) return true;
    for (const item of items) if (results.isBehind(item)) results.behind(item);
    load.items = items.filter((item) => !results.isBehind(item));
    return load.items.length > 0;
  }

  function advance(queue: Queue<Item>, { next }: Load<Item>): void {
    if (next === undefined) return;
    if (next.destination === queue.destination) queue.ready.push(next);
    else call.start(next);
  }

  function settle(load: Load<Item>, outcome: Outcome | readonly Outcome[] | typeof AGAIN): void {
    if (!underWay.delete(load)) return;
    const queue = queueOf(load.destination);
    if (outcome === AGAIN) queue.ready.push(load);
    else {
      if (typeof outcome === "object" && "status" in outcome) concludeAll(load, outcome);
      else concludeEach(load, typeof outcome === "string" ? [outcome] : outcome);
      advance(queue, load);
    }
    window.giveBack(load.destination, load.bytes);
    if (scope.aborted) abandonRest();
    else pump(queue);
    finishWhenDone();
  }

  function concludeAll(load: Load<Item>, failure: LoadFailure | PublishNotStarted): void {
    const { destination, items, bytes } = load;
    if ("divisible" in failure && failure.divisible === true && items.length > 1) {
      const middle = items.length >> 1;
      const second = { destination, items: items.slice(middle), bytes: bytes / 2, next: load.next };
      load.next = { destination, items: items.slice(0, middle), bytes: bytes / 2, next: second };
      return;
    }
    // Closed before it was sent.
    if (scope.ending === "closed" && "scope" in failure && failure.scope === "connection") return;
    for (const item of items) results.fail(item, destination, failure);
  }

  function concludeEach({ destination, items }: Load<Item>, outcomes: readonly Outcome[]): void {
    for (const [place, item] of items.entries()) {
      const outcome = outcomes[place];
      if (typeof outcome === "string") results.sent(item.index, outcome);
      else if (outcome !== undefined) results.fail(item, destination, outcome);
    }
  }

  function abandonRest(): void {
    const indexes = new Set<number>();
    for (const { items } of underWay) for (const { index } of items) indexes.add(index);
    results.abort(indexes);
  }

  function end(): void {
    const left = [...underWay];
    if (carrier.leave !== undefined) {
      underWay.clear();
      for (const load of left) {
        const failure = carrier.leave(load, scope.ending ?? "closed");
        for (const item of load.items) results.fail(item, load.destination, failure);
      }
    }
    abandonRest();
    finishWhenDone();
    // Must come last: giving back room runs the waiting callbacks, and this call must have nothing
    // left by then.
    if (carrier.leave !== undefined) for (const { destination, bytes } of left) window.giveBack(destination, bytes);
  }

  function finishWhenDone(): void {
    if (isDone) return;
    if (refused.length > 0 && results.open <= refused.length) {
      for (const { placed, destination, failure } of refused.splice(0)) results.fail(placed, destination, failure);
    }
    if (results.open > 0) return;
    isDone = true;
    stopFollowing();
    for (const queue of queues.values()) if (queue.isWaiting) window.stopWaiting(queue.onRoom);
    resolveDone(results.all());
  }

  const call: Call<Item> = {
    start(first) {
      const queue = queueOf(first.destination);
      queue.ready.push(first);
      pump(queue);
    },
    settle,
    settleBy(load, work) {
      work.then(
        (outcome) => settle(load, outcome),
        (error: unknown) => settle(load, faultOf(error)),
      );
    },
    breakOff(failure) {
      results.goOffline(failure);
      for (const queue of [...queues.values()]) {
        if (queue.isWaiting) window.stopWaiting(queue.onRoom);
        queue.onRoom();
      }
    },
    refuse(placed, destination, failure) {
      refused.push({ placed, destination, failure });
      results.block(placed);
      finishWhenDone();
    },
    done,
  };
  const carrier = carrierOf(call);
  let stopFollowing = (): void => undefined;
  stopFollowing = scope.onAbort(end);
  finishWhenDone();
  return call;
}

function faultOf(error: unknown): LoadFailure {
  return failed("unknown", "PUBLISH_FAULT", `a fault while the message was handed over: ${describeError(error)}`);
}
