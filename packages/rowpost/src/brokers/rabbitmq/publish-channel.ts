/** One confirm channel: what is not confirmed yet, and what the server says of each. */

import type { OutgoingMessage, PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import type { AmqpChannel, AmqpConfirm, AmqpReturn } from "./amqp.ts";
import { type Address, contentOf, likenessOfReturned, propertiesOf } from "./carry.ts";
import { type Said, saidBy } from "./failures.ts";
import { gathererOf } from "./gathered-writes.ts";
import { createHeaderLender } from "./lent-headers.ts";

/** What came of a message that was handed over. */
export type Answer =
  | { readonly is: "confirmed"; readonly deliveryTag: number }
  /** No queue took it. */
  | { readonly is: "returned" }
  /** A queue refused it. */
  | { readonly is: "refused" }
  /** The channel ended before, or its answer cannot be told from another's. */
  | { readonly is: "unanswered"; readonly failure: PublishFailed };

/** A message to be handed over. */
export interface Handing {
  readonly message: OutgoingMessage;
  readonly address: Address;
  /** See `likenessOf`. */
  readonly likeness: string;
  /** Called once, unless the message is abandoned. */
  readonly answer: (answer: Answer) => void;
}

/** A message that was handed over; its body is not kept. */
export interface Handed {
  readonly contentBytes: number;
  readonly routingKey: string;
}

/** A channel that messages are handed to. */
export interface PublishChannel {
  /** Different from that of every other channel, anywhere, at any time. */
  readonly name: string;
  /** False: it ended, or is not to be used any more. */
  readonly usable: boolean;
  /** The client's buffer has room. */
  readonly writable: boolean;
  /**
   * A message of this likeness is on its way: another one has to wait for its answer. A message
   * that is returned comes back without its number, so of two that look the same nothing would tell
   * which one was dropped and which one is stored. (A property of our own could tell them, but
   * consumers would see it, and `correlation-id` means something to many of them.)
   */
  holds(likeness: string): boolean;
  /** Calls back once when no message of this likeness is on its way any more. */
  onFree(likeness: string, callback: () => void): void;
  /** Returns the message's number. Throws, with nothing handed over, if it cannot be encoded. */
  hand(message: Handing): number;
  /** Calls back once when there is room again, or when it ended. */
  onRoom(callback: () => void): void;
  /**
   * Nobody waits for this message's answer any more. The channel is not used again: its confirms
   * may be stuck, and amqplib remembers every message behind the oldest one without a confirm. It
   * is closed once nobody waits for anything on it.
   */
  abandon(deliveryTag: number): void;
  /** No further message is handed over; it is closed once nobody waits for anything on it. */
  retire(): void;
  /** Closes it. The promise waits for the server's answer, however long. */
  close(): Promise<void>;
}

interface Pending extends Handed {
  readonly likeness: string;
  readonly answer: (answer: Answer) => void;
  returned: boolean;
}

export interface PublishChannelOptions {
  readonly channel: AmqpChannel;
  readonly name: string;
  /** Why the connection ended; undefined while it has not. */
  readonly lostBy: () => Said | undefined;
  /** Called when it has ended. Says what is the failure of each message without an answer. */
  readonly onEnd: (end: ChannelEnded) => (handed: Handed) => PublishFailed;
}

export interface ChannelEnded {
  readonly said: Said;
  readonly proven: boolean;
  readonly unanswered: readonly Handed[];
}

/** Listens to a new channel. */
export function createPublishChannel({ channel, name, lostBy, onEnd }: PublishChannelOptions): PublishChannel {
  /** By delivery tag, in their order. */
  const pending = new Map<number, Pending>();
  /** Those of `pending` by their likeness: never two of the same. */
  const likenesses = new Map<string, Pending>();
  const waitingForRoom = new Set<() => void>();
  const waitingForFree = new Map<string, Set<() => void>>();
  const gather = gathererOf(channel);
  const lend = createHeaderLender();
  let last = 0;
  let ended = false;
  let retired = false;
  let writable = true;
  let proven = false;
  let closedWith: Said | undefined;
  let inDoubt = false;

  function settle(deliveryTag: number, answer: (entry: Pending) => Answer): void {
    const entry = pending.get(deliveryTag);
    if (entry === undefined) return;
    pending.delete(deliveryTag);
    likenesses.delete(entry.likeness);
    entry.answer(answer(entry));
    free(entry);
  }

  /** Lets those go on that wait for this message, which is not on its way any more. */
  function free({ likeness }: Pending): void {
    const waiting = waitingForFree.get(likeness);
    if (waiting === undefined) return;
    waitingForFree.delete(likeness);
    for (const callback of waiting) callback();
  }

  function settleAll({ deliveryTag, multiple }: AmqpConfirm, answer: (entry: Pending, tag: number) => Answer): void {
    proven = true;
    if (!multiple) settle(deliveryTag, (entry) => answer(entry, deliveryTag));
    else {
      for (const tag of pending.keys()) {
        if (tag > deliveryTag) break;
        settle(tag, (entry) => answer(entry, tag));
      }
    }
    closeWhenIdle();
  }

  function roomAgain(): void {
    const waiting = [...waitingForRoom];
    waitingForRoom.clear();
    for (const callback of waiting) callback();
  }

  function closeWhenIdle(): void {
    if (!retired || ended || pending.size > 0) return;
    ended = true;
    // Not waited for: a server that does not answer is noticed by whoever opens the next channel.
    channel.close().catch(() => undefined);
  }

  channel.on("ack", (confirm: AmqpConfirm) => {
    settleAll(confirm, (entry, deliveryTag) => {
      if (entry.returned) return { is: "returned" };
      if (inDoubt) return { is: "unanswered", failure: UNTOLD };
      return { is: "confirmed", deliveryTag };
    });
  });
  channel.on("nack", (confirm: AmqpConfirm) => settleAll(confirm, () => ({ is: "refused" })));
  channel.on("return", (returned: AmqpReturn) => {
    const entry = likenesses.get(likenessOfReturned(returned));
    if (entry !== undefined) {
      entry.returned = true;
      return;
    }
    // Abandoned; or not to be told, so that no confirm of this channel is a receipt.
    if (!retired) inDoubt = true;
    retired = true;
  });
  channel.on("drain", () => {
    writable = true;
    roomAgain();
  });
  channel.on("error", (error: unknown) => {
    closedWith = saidBy(error);
  });
  channel.on("close", () => {
    ended = true;
    // The reason of a lost connection is told after its channels have ended, in the same turn.
    queueMicrotask(() => {
      const unanswered = [...pending.values()];
      pending.clear();
      likenesses.clear();
      const said = closedWith ?? lostBy() ?? CLOSED;
      const failureOf = onEnd({ said, proven, unanswered });
      for (const entry of unanswered) entry.answer({ is: "unanswered", failure: failureOf(entry) });
      for (const entry of unanswered) free(entry);
      roomAgain();
    });
  });

  return {
    name,
    get usable() {
      return !ended && !retired;
    },
    get writable() {
      return writable;
    },
    holds: (likeness) => likenesses.has(likeness),
    onFree(likeness, callback) {
      const waiting = waitingForFree.get(likeness) ?? new Set();
      waitingForFree.set(likeness, waiting.add(callback));
    },
    hand({ message, address, likeness, answer }) {
      const content = contentOf(message.body);
      const properties = propertiesOf(message, lend(message), Date.now());
      writable = channel.publish(address.exchange, address.routingKey, content, properties);
      gather();
      last += 1;
      const { routingKey } = address;
      const entry: Pending = { likeness, routingKey, contentBytes: content.length, answer, returned: false };
      pending.set(last, entry);
      likenesses.set(likeness, entry);
      return last;
    },
    onRoom(callback) {
      waitingForRoom.add(callback);
    },
    abandon(deliveryTag) {
      const entry = pending.get(deliveryTag);
      pending.delete(deliveryTag);
      retired = true;
      closeWhenIdle();
      if (entry === undefined) return;
      likenesses.delete(entry.likeness);
      // They go over another channel.
      free(entry);
    },
    retire() {
      retired = true;
      closeWhenIdle();
    },
    async close() {
      retired = true;
      if (ended) return;
      ended = true;
      await channel.close().catch(() => undefined);
    },
  };
}

const UNTOLD = failed("unknown", "RETURN_UNKNOWN", "RabbitMQ returned a message, and which one cannot be told");
const CLOSED: Said = { code: "CHANNEL_CLOSED", reason: "the channel was closed" };
