/**
 * Publishes messages to RabbitMQ. Those without an ordering key follow each other as far as there
 * is room. One with a key waits for the previous confirm, because RabbitMQ may return or refuse a
 * message and store the next.
 */
import { describeError } from "../../runtime/errors.ts";
import type { OutgoingMessage, PublishFailed, PublishResult } from "../broker.ts";
import type { AbortScope } from "../publishing/abort-scope.ts";
import {
  AGAIN,
  type Call,
  type Carrier,
  createCall,
  type Handed,
  type Load,
  type Outcome,
} from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";
import { bodyBytes, type PlacedMessage, startLanes } from "../publishing/lanes.ts";
import type { Window } from "../publishing/window.ts";
import { type Address, addressOf, likenessOf, receiptOf, unsendable } from "./carry.ts";
import type { Channels, OpenChannel } from "./channels.ts";
import { blockedBy, isOver, refusal, refusedByQueue, unroutable } from "./failures.ts";
import type { RabbitmqRoute } from "./options.ts";
import type { Answer, PublishChannel } from "./publish-channel.ts";

export interface Publishing {
  readonly channels: Channels;
  readonly window: Window;
  readonly route: (message: OutgoingMessage) => RabbitmqRoute;
  readonly maxBodyBytes: number;
  readonly calls: Set<Call<PlacedMessage>>;
}

export async function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  const { window, calls, route } = publishing;
  const addresses = new Map<OutgoingMessage, Address | PublishFailed>();
  const call = createCall<PlacedMessage>({
    count: batch.length,
    scope,
    window,
    carrier: (own) => carrierOf(publishing, addresses, own),
  });
  calls.add(call);
  try {
    for (const message of batch) addresses.set(message, addressOf(message, route));
    // A mapping may spread a topic over exchanges, of which one can be away.
    const destinationOf = (message: OutgoingMessage): string => {
      const address = addresses.get(message);
      const exchange = address !== undefined && "exchange" in address ? address.exchange : "";
      return exchange === "" ? message.topic : `${message.topic} ${exchange}`;
    };
    startLanes(call, batch, { destinationOf, bytesOf: bodyBytes });
    return await call.done;
  } finally {
    calls.delete(call);
  }
}

type Single = Load<PlacedMessage>;

interface WithServer {
  readonly channel: PublishChannel;
  readonly deliveryTag: number;
}

function carrierOf(
  publishing: Publishing,
  addresses: ReadonlyMap<OutgoingMessage, Address | PublishFailed>,
  call: Call<PlacedMessage>,
): Carrier<PlacedMessage> {
  const { channels } = publishing;
  const withServer = new Map<Single, WithServer>();
  const closedExchanges = new Map<string, PublishFailed>();

  function handTo({ link, channel }: OpenChannel, load: Single, address: Address, retry: () => void): Handed {
    const message = load.items[0]?.message;
    if (message === undefined) return undefined;
    if (link.blocked !== undefined) return blockedBy(link.blocked);
    if (!channel.writable) {
      channel.onRoom(retry);
      return AGAIN;
    }
    try {
      const likeness = likenessUnlessRefused(publishing, load, message, address, link.frameBytes);
      if (typeof likeness !== "string") return likeness;
      if (channel.holds(likeness)) {
        channel.onFree(likeness, retry);
        return AGAIN;
      }
      const answer = (given: Answer): void => {
        withServer.delete(load);
        call.settle(load, outcomeOf(message.topic, address, channel, given));
      };
      withServer.set(load, { channel, deliveryTag: channel.hand({ message, address, likeness, answer }) });
      return undefined;
    } catch (error) {
      // The client writes nothing that it cannot encode, nor on a closing connection.
      if (isOver(error)) return failed("connection", "CONNECTION_CLOSED", error.message);
      // For instance a header that is no text.
      return refusal("MESSAGE_INVALID", describeError(error));
    }
  }

  async function open(
    opening: Promise<OpenChannel | PublishFailed>,
    exchange: string,
    retry: () => void,
  ): Promise<void> {
    const opened = await opening;
    if ("status" in opened) closedExchanges.set(exchange, opened);
    retry();
  }

  return {
    hand(load, retry) {
      const message = load.items[0]?.message;
      if (message === undefined) return undefined;
      const address = addresses.get(message);
      if (address === undefined || "status" in address) return address;
      const known = closedExchanges.get(address.exchange);
      if (known !== undefined) return known;
      const channel = channels.of(address.exchange);
      if (channel instanceof Promise) void open(channel, address.exchange, retry);
      return channel instanceof Promise ? AGAIN : handTo(channel, load, address, retry);
    },
    leave(load, ending) {
      const handed = withServer.get(load);
      handed?.channel.abandon(handed.deliveryTag);
      return ending === "closed" ? CLOSED : UNCONFIRMED;
    },
  };
}

function likenessUnlessRefused(
  { channels, maxBodyBytes }: Publishing,
  { bytes }: Single,
  message: OutgoingMessage,
  address: Address,
  frameBytes: number,
): string | PublishFailed {
  const limits = { bodyBytes: Math.min(maxBodyBytes, channels.largestBody), frameBytes };
  return channels.refusalOf(address) ?? unsendable(message, bytes, limits) ?? likenessOf(message, address);
}

function outcomeOf(topic: string, address: Address, channel: PublishChannel, answer: Answer): Outcome {
  switch (answer.is) {
    case "confirmed":
      return receiptOf(address, channel.name, answer.deliveryTag);
    case "returned":
      return unroutable(topic, address.exchange, address.routingKey);
    case "refused":
      return refusedByQueue(topic);
    case "unanswered":
      return answer.failure;
  }
}

const UNCONFIRMED = failed("unknown", "CONFIRM_TIMEOUT", "RabbitMQ did not confirm the message before the deadline");
const CLOSED = failed("unknown", "CLOSED", "the RabbitMQ broker was closed before the message was confirmed");
