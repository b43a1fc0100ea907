/** One confirm channel: what was handed to it and is not confirmed yet, and what the server says about each. */
import type { OutgoingMessage } from "../broker.ts";
import type { AmqpChannel, AmqpConfirm, AmqpReturn } from "./amqp.ts";
import { type Address, contentOf, propertiesOf } from "./carry.ts";
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
  /** The channel ended before; `isTooLarge`: because of this message's size. */
  | { readonly is: "unanswered"; readonly said: Said; readonly proven: boolean; readonly isTooLarge: boolean };

/** A message to be handed over. */
export interface Handing {
  readonly message: OutgoingMessage;
  readonly address: Address;
  /** Called once, unless the message is abandoned. */
  readonly answer: (answer: Answer) => void;
}

/** A message that was handed over; its body is not kept. */
export interface Handed {
  readonly contentBytes: number;
}

/** A channel that messages are handed to. */
export interface PublishChannel {
  /** Different from that of every other channel, anywhere, at any time. */
  readonly name: string;
  /** False: it ended, or is not to be used any more. */
  readonly usable: boolean;
  /** The client's buffer has room. */
  readonly writable: boolean;
  /** Hands a message over and returns its number. Throws, with nothing handed over, when it cannot be encoded. */
  hand(message: Handing): number;
  /** Calls back once when there is room again, or when it ended. */
  onRoom(callback: () => void): void;
  /**
   * Nobody waits for this message's answer any more. The channel is not used again: its confirms may be stuck, and amqplib remembers every
   * message behind the oldest one without a confirm. It is closed once nobody waits for anything on it.
   */
  abandon(deliveryTag: number): void;
  /** No further message is handed over; it is closed once nobody waits for anything on it. */
  retire(): void;
  /** Closes it. The promise waits for the server's answer, however long. */
  close(): Promise<void>;
}

interface Pending extends Handed {
  readonly messageId: string;
  readonly attempt: string | undefined;
  readonly answer: (answer: Answer) => void;
  returned: boolean;
}

export interface PublishChannelOptions {
  readonly channel: AmqpChannel;
  readonly name: string;
  /** Why the connection ended; undefined while it has not. */
  readonly lostBy: () => Said | undefined;
  /** Called when it has ended. Finds, among the messages without an answer, the one that was too large, if that was why. */
  readonly onEnd: (end: ChannelEnded) => Handed | undefined;
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
  const waitingForRoom = new Set<() => void>();
  const gather = gathererOf(channel);
  const lend = createHeaderLender();
  let last = 0;
  let ended = false;
  let retired = false;
  let writable = true;
  let proven = false;
  let closedWith: Said | undefined;
  let doubt: Said | undefined;

  function settle(deliveryTag: number, answer: (entry: Pending) => Answer): void {
    const entry = pending.get(deliveryTag);
    if (entry === undefined) return;
    pending.delete(deliveryTag);
    entry.answer(answer(entry));
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
      if (doubt !== undefined) return { is: "unanswered", said: doubt, proven, isTooLarge: false };
      return { is: "confirmed", deliveryTag };
    });
  });
  channel.on("nack", (confirm: AmqpConfirm) => settleAll(confirm, () => ({ is: "refused" })));
  channel.on("return", (returned: AmqpReturn) => {
    // The server handles a channel's messages in their order: it is the first of that name that has not come back.
    for (const entry of pending.values()) {
      if (entry.returned || !isCopy(entry, returned.properties)) continue;
      entry.returned = true;
      return;
    }
    // One that nobody waits for any more; or one that cannot be told, so that no confirm of this channel is a receipt.
    if (!retired) doubt = UNTOLD;
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
      const said = closedWith ?? lostBy() ?? CLOSED;
      const tooLarge = onEnd({ said, proven, unanswered });
      for (const entry of unanswered) entry.answer({ is: "unanswered", said, proven, isTooLarge: entry === tooLarge });
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
    hand({ message, address, answer }) {
      const content = contentOf(message.body);
      const properties = propertiesOf(message, lend(message.headers), Date.now());
      writable = channel.publish(address.exchange, address.routingKey, content, properties);
      gather();
      last += 1;
      const { messageId } = properties;
      const attempt = message.headers[ATTEMPT];
      pending.set(last, { messageId, attempt, contentBytes: content.length, answer, returned: false });
      return last;
    },
    onRoom(callback) {
      waitingForRoom.add(callback);
    },
    abandon(deliveryTag) {
      pending.delete(deliveryTag);
      retired = true;
      closeWhenIdle();
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

const UNTOLD: Said = { code: "RETURN_UNKNOWN", reason: "RabbitMQ returned a message, and which one cannot be told" };
const CLOSED: Said = { code: "CHANNEL_CLOSED", reason: "the channel was closed" };

const ATTEMPT = "rowpost-attempt";

/** A message is known by its id and by which attempt it is, since an earlier one may still be under way. */
function isCopy(sent: Pending, returned: AmqpReturn["properties"]): boolean {
  return sent.messageId === returned.messageId && sent.attempt === returned.headers?.[ATTEMPT];
}
