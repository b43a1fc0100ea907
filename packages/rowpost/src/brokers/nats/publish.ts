/**
 * One publish call: messages without an ordering key go out side by side, those of a key one after another, each waiting for the receipt of
 * the one before. (NATS keeps the order of a connection, but a stream that refuses one message takes the next.)
 */

import { onAbort } from "../../runtime/abort.ts";
import type { MessageWindow } from "../../runtime/message-window.ts";
import { ABORTED, BEHIND, type OutgoingMessage, type PublishResult } from "../broker.ts";
import { connectionFailure, destinationFailure, type Failure, unknownFailure } from "./failures.ts";
import type { Link, Outcome } from "./link.ts";
import type { Settings } from "./options.ts";
import type { Streams } from "./streams.ts";
import { encode, type Route, routeOf, type Wire } from "./wire.ts";

/** What publishing needs of the rest of the adapter. */
export interface Publishing {
  readonly settings: Settings;
  readonly streams: Streams;
  readonly window: MessageWindow;
}

const CONNECTION_LOST = connectionFailure("CONNECTION_LOST", "the connection broke before this message's turn");
const UNANSWERED = unknownFailure("DEADLINE", "no receipt before the publish deadline");
const UNEXPLAINED = destinationFailure(
  "NO_RESPONDERS",
  "nobody takes the subject, and JetStream did not say why in time",
);

/** `message_id` has 255 characters, and so may a stream's name have; the sequence stands at the end. */
const MAX_RECEIPT_LENGTH = 255;

/** Hands the messages over on the link. Settles when each has its outcome, and at once when the signal is aborted. */
export function publishBatch(
  publishing: Publishing,
  link: Link,
  batch: readonly OutgoingMessage[],
  signal: AbortSignal,
): Promise<PublishResult[]> {
  // Aborted while the link was found. Past this line the abort comes later, and never while the call is still being set up.
  if (signal.aborted) return Promise.resolve(batch.map(() => ABORTED));
  return new Promise((resolve) => {
    const call = createCall(publishing, link, { batch, signal }, (results) => {
      stopFollowing();
      resolve(results);
    });
    const stopFollowing = onAbort(signal, call.abort);
    call.pump();
  });
}

/** The same failure for a whole batch, of which nothing was handed over: behind the first of an ordering key nothing was tried. */
export function failBatch(batch: readonly OutgoingMessage[], failure: Failure): PublishResult[] {
  const keys = new Set<string>();
  return batch.map(({ orderingKey }) => {
    if (orderingKey !== undefined && keys.has(orderingKey)) return BEHIND;
    if (orderingKey !== undefined) keys.add(orderingKey);
    return failed(failure);
  });
}

function failed({ scope, retriable, code, reason, retryAfterMs }: Failure): PublishResult {
  return { status: "failed", scope, retriable, code, reason, retryAfterMs };
}

/** A message that is with the server, as its call may have to leave it. */
interface Leaving {
  readonly failure: Failure;
  /** Forgets it and gives its room back, which lets whoever waits for room go on at once. */
  readonly letGo: () => void;
}

interface Call {
  /** Hands over what may go, as far as there is room. */
  readonly pump: () => void;
  /** Settles all that is open. */
  readonly abort: () => void;
}

function createCall(
  { settings, streams, window }: Publishing,
  link: Link,
  { batch, signal }: { readonly batch: readonly OutgoingMessage[]; readonly signal: AbortSignal },
  done: (results: PublishResult[]) => void,
): Call {
  const results = new Array<PublishResult | undefined>(batch.length);
  const lines = linesOf(batch);
  /** Messages that are with the server, by index. */
  const withServer = new Map<number, Leaving>();
  const routes = new Map<string, Route | Failure>();
  /** What became true of everything, or of a subject, during the call: the rest is not tried one by one. */
  let offline: Failure | undefined;
  const away = new Map<string, Failure>();
  let position = 0;
  let open = batch.length;

  function settle(index: number, result: PublishResult): void {
    if (results[index] !== undefined) return;
    results[index] = result;
    open -= 1;
    const line = lines.behind.get(batch[index]?.orderingKey);
    if (result.status !== "sent") for (const later of line?.splice(0) ?? []) settle(later, BEHIND);
    const next = line?.shift();
    if (next !== undefined) lines.ready.push(next);
    if (open > 0) return;
    window.stopWaiting(pump);
    done(results.map((each) => each ?? ABORTED));
  }

  function pump(): void {
    // Called with the room of a call that the same signal ended, before this one's own abort.
    if (signal.aborted) return;
    for (; position < lines.ready.length; position += 1) {
      const index = lines.ready[position] ?? 0;
      const message = batch[index];
      if (message === undefined || results[index] !== undefined) continue;
      const wire = wireOf(message);
      if ("scope" in wire) {
        settle(index, failed(wire));
      } else if (window.take(wire.bytes)) {
        handOver(index, message, wire);
      } else {
        window.onRoom(pump);
        return;
      }
    }
  }

  function wireOf(message: OutgoingMessage): Wire | Failure {
    if (!link.isUsable()) offline ??= CONNECTION_LOST;
    if (offline !== undefined) return offline;
    const route = routes.get(message.topic) ?? routeOf(message.topic, settings);
    routes.set(message.topic, route);
    if ("scope" in route) return route;
    return away.get(route.subject) ?? encode(message, route, settings, link.maxPayload());
  }

  function handOver(index: number, { topic }: OutgoingMessage, { subject, headers, body, bytes }: Wire): void {
    let forget = (): void => undefined;
    // Before the sending, which settles at once when the connection is closed.
    withServer.set(index, {
      failure: UNANSWERED,
      letGo: () => {
        forget();
        window.release(bytes);
      },
    });
    forget = link.send({ subject, headers, body, settle: land });

    function land(outcome: Outcome): void {
      withServer.delete(index);
      onOutcome(index, topic, subject, outcome);
      window.release(bytes);
      pump();
    }
  }

  function onOutcome(index: number, topic: string, subject: string, outcome: Outcome): void {
    if (outcome.kind === "stored") {
      settle(index, { status: "sent", messageId: `${outcome.stream}:${outcome.sequence}`.slice(-MAX_RECEIPT_LENGTH) });
    } else if (outcome.kind === "failed") {
      fail(index, subject, outcome.failure);
    } else {
      // Certain that nothing was stored; why, is a question that may take longer than this call has.
      withServer.set(index, { failure: UNEXPLAINED, letGo: () => undefined });
      void streams.explain(link, subject, topic).then((failure) => {
        withServer.delete(index);
        fail(index, subject, failure);
        pump();
      });
    }
  }

  function fail(index: number, subject: string, failure: Failure): void {
    if (failure.scope === "connection") offline ??= failure;
    if (failure.scope === "destination") away.set(subject, failure);
    settle(index, failed(failure));
  }

  function abort(): void {
    const left = [...withServer];
    withServer.clear();
    for (const [index, { failure }] of left) settle(index, failed(failure));
    for (const index of batch.keys()) settle(index, ABORTED);
    // Last: room calls back whoever waits for it, and this call must have nothing left by then that it would hand over and call not started.
    for (const [, { letGo }] of left) letGo();
  }

  return { pump, abort };
}

interface Lines {
  /** Indexes that may go, in this order; grows when one of a key was sent. */
  readonly ready: number[];
  /** Indexes that wait for the one before them, by ordering key. */
  readonly behind: Map<string | undefined, number[]>;
}

function linesOf(batch: readonly OutgoingMessage[]): Lines {
  const ready: number[] = [];
  const behind: Lines["behind"] = new Map();
  for (const [index, { orderingKey }] of batch.entries()) {
    const line = orderingKey === undefined ? undefined : behind.get(orderingKey);
    if (line === undefined) {
      ready.push(index);
      if (orderingKey !== undefined) behind.set(orderingKey, []);
    } else {
      line.push(index);
    }
  }
  return { ready, behind };
}
