/**
 * One confirm channel for each exchange.
 *
 * The server ends a channel at the first message whose exchange does not exist or may not be
 * written to, and drops the messages behind it. With its own channel, a wrong exchange affects only
 * its own messages.
 */

import { randomBytes } from "node:crypto";
import { closeQuietly } from "../../runtime/deadline.ts";
import type { PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { oneAtATime } from "../publishing/one-at-a-time.ts";
import type { Address } from "./carry.ts";
import { CLOSED, type Connection, type Link } from "./connection.ts";
import {
  blockedBy,
  failureOfEnd,
  isAboutExchange,
  isAboutRoutingKey,
  largestBodyIn,
  refusedByTopic,
  refusedRoutingKey,
  type Said,
  saidBy,
  tooLargeForServer,
  unknownAfter,
} from "./failures.ts";
import { type ChannelEnded, createPublishChannel, type Handed, type PublishChannel } from "./publish-channel.ts";

export interface OpenChannel {
  readonly link: Link;
  readonly channel: PublishChannel;
}

export interface Channels {
  /** The channel of an exchange, or why there is none. Never rejects. */
  of(exchange: string): OpenChannel | Promise<OpenChannel | PublishFailed>;
  /** Why no message may go to this routing key just now. Undefined if nothing is known. */
  refusalOf(address: Address): PublishFailed | undefined;
  readonly largestBody: number;
  /** Closes all, waiting half a second at most. Never rejects. */
  close(): Promise<void>;
}

/** A faulty mapping can produce any number of exchanges; a server allows 2,047 channels. */
const MAX_CHANNELS = 64;
const REFUSED_FOR_MS = 1_000;

export function createChannels(connection: Connection): Channels {
  const channels = new Map<string, OpenChannel>();
  const shared = oneAtATime<OpenChannel | PublishFailed>();
  const refusedExchanges = createRefusals();
  const refusedPlaces = createRefusals();
  let largestBody = Number.POSITIVE_INFINITY;
  let lastLink: Link | undefined;
  let closed = false;

  function ended(exchange: string, { said, proven, unanswered }: ChannelEnded): (handed: Handed) => PublishFailed {
    const size = largestBodyIn(said);
    if (size !== undefined) {
      largestBody = Math.min(largestBody, size.largest);
      const tooLarge = unanswered.find(({ contentBytes }) => contentBytes === size.sent);
      return (handed) => (handed === tooLarge ? tooLargeForServer(said) : unknownAfter(said));
    }
    if (isAboutRoutingKey(said)) return endedByTopic(exchange, said, unanswered);
    const failed = failureOfEnd({ exchange, said, proven });
    if (isAboutExchange(said) && !proven) refusedExchanges.add(exchange, failed);
    return () => failed;
  }

  /** Messages with other routing keys may have been stored before the channel ended. */
  function endedByTopic(
    exchange: string,
    said: Said,
    unanswered: readonly Handed[],
  ): (handed: Handed) => PublishFailed {
    const refused = refusedRoutingKey(
      said,
      unanswered.map(({ routingKey }) => routingKey),
    );
    if (refused === undefined) return () => unknownAfter(said);
    const failed = refusedByTopic(exchange, refused, said);
    refusedPlaces.add(placeOf({ exchange, routingKey: refused }), failed);
    return ({ routingKey }) => (routingKey === refused ? failed : unknownAfter(said));
  }

  async function open(exchange: string): Promise<OpenChannel | PublishFailed> {
    const link = await connection.open();
    if ("status" in link) return link;
    // A blocked server does not answer, and must not be mistaken for dead.
    if (link.blocked !== undefined) return blockedBy(link.blocked);
    // Changing the limit takes a restart of the server.
    if (link !== lastLink) largestBody = Number.POSITIVE_INFINITY;
    lastLink = link;
    try {
      const opened: OpenChannel = {
        link,
        channel: createPublishChannel({
          channel: await link.openChannel(),
          name: randomBytes(6).toString("base64url"),
          lostBy: () => link.lost,
          onEnd: (end) => ended(exchange, end),
        }),
      };
      if (closed) {
        // Only this function knows the channel, and a connection passed in stays open.
        void opened.channel.close();
        return CLOSED;
      }
      keep(exchange, opened);
      return opened;
    } catch (error) {
      const { code, reason } = link.lost ?? saidBy(error);
      return failed("connection", code, `${link.label}: ${reason}`);
    }
  }

  function keep(exchange: string, opened: OpenChannel): void {
    channels.delete(exchange); // To the end: the oldest is evicted first.
    channels.set(exchange, opened);
    for (const [oldest, { channel }] of channels) {
      if (channels.size <= MAX_CHANNELS) return;
      channels.delete(oldest);
      channel.retire();
    }
  }

  return {
    of(exchange) {
      const known = channels.get(exchange);
      if (known?.channel.usable === true) return known;
      const refused = refusedExchanges.of(exchange);
      if (refused !== undefined) return Promise.resolve(refused);
      return shared(exchange, () => open(exchange));
    },
    refusalOf: (address) => (refusedPlaces.isEmpty() ? undefined : refusedPlaces.of(placeOf(address))),
    get largestBody() {
      return largestBody;
    },
    async close() {
      closed = true;
      const closing = [...channels.values()].map(({ channel }) => channel.close());
      channels.clear();
      await closeQuietly(Promise.all(closing));
    },
  };
}

function placeOf({ exchange, routingKey }: Address): string {
  return JSON.stringify([exchange, routingKey]);
}

interface Refusals {
  /** Called for each message, to build the key only when something is refused. */
  isEmpty(): boolean;
  add(what: string, failed: PublishFailed): void;
  of(what: string): PublishFailed | undefined;
}

function createRefusals(): Refusals {
  const refused = new Map<string, { readonly failed: PublishFailed; readonly untilMs: number }>();
  let newestUntilMs = 0;
  return {
    isEmpty() {
      if (refused.size > 0 && performance.now() >= newestUntilMs) refused.clear();
      return refused.size === 0;
    },
    add(what, failed) {
      if (refused.size >= MAX_CHANNELS) refused.clear();
      newestUntilMs = performance.now() + REFUSED_FOR_MS;
      refused.set(what, { failed, untilMs: newestUntilMs });
    },
    of(what) {
      const known = refused.get(what);
      if (known === undefined || performance.now() < known.untilMs) return known?.failed;
      refused.delete(what);
      return undefined;
    },
  };
}
