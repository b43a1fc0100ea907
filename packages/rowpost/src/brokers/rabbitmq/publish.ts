/**
 * One publish call. Messages without an ordering key are handed over one behind the other, as far as there is room. A message with one waits
 * for the confirm of the one before it: RabbitMQ may return or refuse a message and store the next, which would then stand before it.
 */
import { describeError } from "../../runtime/errors.ts";
import type { MessageWindow } from "../../runtime/message-window.ts";
import { ABORTED, BEHIND, type OutgoingMessage, type PublishFailed, type PublishResult } from "../broker.ts";
import { type Address, addressOf, bodyBytes, likenessOf, receiptOf, unsendable } from "./carry.ts";
import type { Channels, OpenChannel } from "./channels.ts";
import type { Link } from "./connection.ts";
import { blockedBy, failure, isOver, refusal, refusedByQueue, unroutable } from "./failures.ts";
import type { RabbitmqRoute } from "./options.ts";
import type { Answer, PublishChannel } from "./publish-channel.ts";

/** What publishing needs of the rest of the adapter. */
export interface Publishing {
  readonly channels: Channels;
  readonly window: MessageWindow;
  readonly route: (message: OutgoingMessage) => RabbitmqRoute;
  readonly maxBodyBytes: number;
  /** Calls that run. */
  readonly running: Set<Running>;
}

/** A call, for whoever has news for all of them. */
export interface Running {
  /** Ends it: what was handed over is `unknown`, the rest `notStarted`. */
  close(): void;
  /** Looks again at what may be handed over. */
  advance(): void;
}

/** A message of the call. */
interface Item {
  readonly index: number;
  readonly message: OutgoingMessage;
  readonly bytes: number;
  /** The messages with its ordering key, itself among them. */
  readonly lane: readonly Item[] | undefined;
  address: Address | undefined;
  /** While it is on its way. */
  handed: { readonly channel: PublishChannel; readonly deliveryTag: number } | undefined;
}

/** What is on its way to one exchange. */
interface Queue {
  readonly exchange: string;
  /** Those that may go now, in their order, from `next` on. */
  readonly items: Item[];
  next: number;
  isOpening: boolean;
  readonly advance: () => void;
}

interface Run {
  readonly publishing: Publishing;
  readonly results: (PublishResult | undefined)[];
  readonly queues: Map<string, Queue>;
  readonly items: readonly Item[];
  /** Messages without a result. */
  left: number;
  aborted: boolean;
  /** RabbitMQ cannot be reached: what was not handed over yet is not tried one by one. */
  offline: PublishFailed | undefined;
  readonly end: () => void;
}

export function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  signal: AbortSignal,
): Promise<PublishResult[]> {
  const items = itemsOf(batch);
  return new Promise((resolve) => {
    const run: Run = {
      publishing,
      results: new Array<PublishResult | undefined>(batch.length),
      queues: new Map(),
      items,
      left: batch.length,
      aborted: false,
      offline: undefined,
      end() {
        signal.removeEventListener("abort", onDeadline);
        publishing.running.delete(running);
        // Not map(), which passes over places that were never filled.
        resolve(Array.from(run.results, (result) => result ?? ABORTED));
      },
    };
    const running: Running = {
      close: () => abort(run, CLOSED),
      advance() {
        for (const queue of run.queues.values()) queue.advance();
      },
    };
    const onDeadline = (): void => abort(run, UNCONFIRMED);
    signal.addEventListener("abort", onDeadline, { once: true });
    publishing.running.add(running);
    guarded(run, () => {
      for (const item of items) {
        if (item.lane === undefined || item.lane[0] === item) start(run, item);
      }
    });
  });
}

function itemsOf(batch: readonly OutgoingMessage[]): Item[] {
  const lanes = new Map<string, Item[]>();
  return batch.map((message, index) => {
    const { orderingKey } = message;
    let lane = orderingKey === undefined ? undefined : lanes.get(orderingKey);
    if (orderingKey !== undefined && lane === undefined) {
      lane = [];
      lanes.set(orderingKey, lane);
    }
    const bytes = bodyBytes(message.body);
    const item: Item = { index, message, bytes, lane, address: undefined, handed: undefined };
    lane?.push(item);
    return item;
  });
}

/** Puts a message in the queue of its exchange, and hands over what can be. */
function start(run: Run, item: Item): void {
  const address = run.offline ?? addressOf(item.message, run.publishing.route);
  if ("status" in address) {
    settle(run, item, address);
    return;
  }
  item.address = address;
  const queue = run.queues.get(address.exchange) ?? openQueue(run, address.exchange);
  queue.items.push(item);
  queue.advance();
}

function openQueue(run: Run, exchange: string): Queue {
  const queue: Queue = {
    exchange,
    items: [],
    next: 0,
    isOpening: false,
    advance: () => guarded(run, () => advance(run, queue)),
  };
  run.queues.set(exchange, queue);
  return queue;
}

/** Hands over as much of a queue as there is room for. Called again when there is more. */
function advance(run: Run, queue: Queue): void {
  if (queue.isOpening) return;
  const { channels } = run.publishing;
  while (!run.aborted && queue.next < queue.items.length) {
    const open = channels.of(queue.exchange);
    if (open instanceof Promise) {
      queue.isOpening = true;
      void open.then((opened) => {
        queue.isOpening = false;
        if (run.aborted) return;
        if ("status" in opened) guarded(run, () => failQueue(run, queue, opened));
        else queue.advance();
      });
      return;
    }
    if (open.link.blocked !== undefined) {
      failQueue(run, queue, blockedBy(open.link.blocked));
      return;
    }
    if (!handNext(run, queue, open)) return;
  }
  if (queue.next < queue.items.length || queue.next === 0) return;
  queue.items.length = 0;
  queue.next = 0;
}

/** Hands over the next message of a queue, or gives it its failure; false when there is no room for it now. */
function handNext(run: Run, queue: Queue, { link, channel }: OpenChannel): boolean {
  const { window } = run.publishing;
  const item = queue.items[queue.next];
  if (item?.address === undefined) return false;
  if (!channel.writable) {
    channel.onRoom(queue.advance);
    return false;
  }
  const likeness = likenessUnlessRefused(run, item, item.address, link);
  if (typeof likeness !== "string") {
    queue.next += 1;
    settle(run, item, likeness);
    return true;
  }
  if (channel.holds(likeness)) {
    channel.onFree(likeness, queue.advance);
    return false;
  }
  if (!window.take(item.bytes)) {
    window.onRoom(queue.advance);
    return false;
  }
  queue.next += 1;
  hand(run, item, channel, likeness);
  return true;
}

/** What the message would be known by if it came back; or why it cannot go out. */
function likenessUnlessRefused(
  { publishing }: Run,
  { message, bytes }: Item,
  address: Address,
  { frameBytes }: Link,
): string | PublishFailed {
  const { channels, maxBodyBytes } = publishing;
  try {
    const limits = { bodyBytes: Math.min(maxBodyBytes, channels.largestBody), frameBytes };
    return channels.refusalOf(address) ?? unsendable(message, bytes, limits) ?? likenessOf(message, address);
  } catch (error) {
    // A header that is no text, for instance.
    return refusal("MESSAGE_INVALID", describeError(error));
  }
}

function hand(run: Run, item: Item, channel: PublishChannel, likeness: string): void {
  const { message, address = { exchange: "", routingKey: "" } } = item;
  try {
    const deliveryTag = channel.hand({
      message,
      address,
      likeness,
      answer: (answer) => guarded(run, () => onAnswer(run, item, address, channel, answer)),
    });
    item.handed = { channel, deliveryTag };
  } catch (error) {
    run.publishing.window.release(item.bytes);
    // The client writes nothing of a message that it cannot encode, nor on a connection that is being closed.
    const what = isOver(error) ? failure("connection", "CONNECTION_CLOSED", error.message) : undefined;
    settle(run, item, what ?? refusal("MESSAGE_INVALID", describeError(error)));
  }
}

function onAnswer(run: Run, item: Item, address: Address, channel: PublishChannel, answer: Answer): void {
  const result = resultOf(item.message, address, channel, answer);
  item.handed = undefined;
  run.publishing.window.release(item.bytes);
  settle(run, item, result);
}

function resultOf(
  { topic }: OutgoingMessage,
  { exchange, routingKey }: Address,
  channel: PublishChannel,
  answer: Answer,
): PublishResult {
  switch (answer.is) {
    case "confirmed":
      return { status: "sent", messageId: receiptOf({ exchange, routingKey }, channel.name, answer.deliveryTag) };
    case "returned":
      return unroutable(topic, exchange, routingKey);
    case "refused":
      return refusedByQueue(topic);
    case "unanswered":
      return answer.failure;
  }
}

/** Fails what of a queue was not handed over. */
function failQueue(run: Run, queue: Queue, why: PublishFailed): void {
  if (why.scope === "connection") run.offline = why;
  const waiting = queue.items.slice(queue.next);
  queue.items.length = 0;
  queue.next = 0;
  for (const item of waiting) settle(run, item, why);
}

/** Gives a message its result; then the next of its ordering key can go, or cannot any more. */
function settle(run: Run, item: Item, result: PublishResult): void {
  if (run.aborted || run.results[item.index] !== undefined) return;
  run.results[item.index] = result;
  run.left -= 1;
  const { lane } = item;
  if (lane !== undefined) {
    const behind = lane.indexOf(item) + 1;
    const next = lane[behind];
    if (result.status === "sent" && next !== undefined) start(run, next);
    else if (result.status !== "sent") {
      for (const follower of lane.slice(behind)) {
        run.results[follower.index] = BEHIND;
        run.left -= 1;
      }
    }
  }
  if (run.left === 0) run.end();
}

/**
 * Does a step of a call. What it throws, by a fault of ours or of something in a message, ends this call and no other: amqplib, whose events most
 * steps follow, would end the whole connection.
 */
function guarded(run: Run, step: () => void): void {
  try {
    step();
  } catch (error) {
    abort(run, failure("unknown", "PUBLISH_FAULT", `the publish call ended by a fault: ${describeError(error)}`));
  }
}

/** Ends a call: what was handed over fails with `why`, the rest was not started. */
function abort(run: Run, why: PublishFailed): void {
  if (run.aborted) return;
  run.aborted = true;
  for (const item of run.items) {
    if (item.handed === undefined) continue;
    run.publishing.window.release(item.bytes);
    run.results[item.index] = why;
    item.handed.channel.abandon(item.handed.deliveryTag);
  }
  for (const queue of run.queues.values()) queue.items.length = 0;
  run.end();
}

const UNCONFIRMED = failure("unknown", "CONFIRM_TIMEOUT", "RabbitMQ did not confirm the message before the deadline");
const CLOSED = failure("unknown", "CLOSED", "the RabbitMQ broker was closed before the message was confirmed");
