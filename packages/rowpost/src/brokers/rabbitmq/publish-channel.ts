/** One confirm channel: its unconfirmed messages and the server's answer to each. */

import type { OutgoingMessage, PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import type { AmqpChannel, AmqpConfirm, AmqpReturn } from "./amqp.ts";
import { type Address, contentOf, likenessOfReturned, propertiesOf } from "./carry.ts";
import { type Said, saidBy } from "./failures.ts";
import { gathererOf } from "./gathered-writes.ts";
import { createHeaderLender } from "./lent-headers.ts";

export type Answer =
  | { readonly is: "confirmed"; readonly deliveryTag: number }
  | { readonly is: "returned" }
  | { readonly is: "refused" }
  /** The channel ended first, or the answer cannot be told from another's. */
  | { readonly is: "unanswered"; readonly failure: PublishFailed };

export interface Handing {
  readonly message: OutgoingMessage;
  readonly address: Address;
  readonly likeness: string;
  readonly answer: (answer: Answer) => void;
}

export interface Handed {
  readonly contentBytes: number;
  readonly routingKey: string;
}

export interface PublishChannel {
  /** Globally unique. */
  readonly name: string;
  readonly usable: boolean;
  readonly writable: boolean;
  /**
   * A message of this likeness is in flight, and another must wait for its answer. A returned
   * message comes back without its number, so two alike could not be told apart. (An extra property
   * could, but consumers would see it, and many use `correlation-id`.)
   */
  holds(likeness: string): boolean;
  /** Calls back once when no message of this likeness is in flight. */
  onFree(likeness: string, callback: () => void): void;
  /** Returns the message's number. Throws, with nothing handed over, if it cannot be encoded. */
  hand(message: Handing): number;
  /** Calls back once when there is room or the channel has ended. */
  onRoom(callback: () => void): void;
  /**
   * Drops interest in this message's answer. The channel takes no more messages, because its
   * confirms may be stuck and amqplib remembers every message behind the oldest unconfirmed one. It
   * closes when nothing on it is awaited.
   */
  abandon(deliveryTag: number): void;
  retire(): void;
  /** Closes it. The promise waits for the server's answer without limit. */
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
  readonly lostBy: () => Said | undefined;
  /** Called when it has ended. Returns the failure of each message without an answer. */
  readonly onEnd: (end: ChannelEnded) => (handed: Handed) => PublishFailed;
}

export interface ChannelEnded {
  readonly said: Said;
  readonly proven: boolean;
  readonly unanswered: readonly Handed[];
}

export function createPublishChannel({ channel, name, lostBy, onEnd }: PublishChannelOptions): PublishChannel {
  const pending = new Map<number, Pending>();
  /** `pending` by likeness; never two alike. */
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

  /** Continues those that wait for this message, which is no longer in flight. */
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
    // Not awaited: opening the next channel detects a server that does not answer.
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
    // Abandoned, or unknown; in the latter case no confirm of this channel is a receipt.
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
    // The reason of a lost connection is reported after its channels have ended, in the same turn.
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
