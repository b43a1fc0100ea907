/**
 * A confirm channel for each exchange.
 *
 * The server ends a channel at the first message whose exchange does not exist, or may not be written to, and drops what is behind it. With a
 * channel of its own an exchange that is wrong can hurt nothing but its own messages.
 */
import { randomBytes } from "node:crypto";
import type { PublishFailed } from "../broker.ts";
import { type Connection, GOODBYE_MS, type Link, within } from "./connection.ts";
import { blockedBy, failure, failureOfEnd, isAboutExchange, largestBodyIn, saidBy } from "./failures.ts";
import { type ChannelEnded, createPublishChannel, type Handed, type PublishChannel } from "./publish-channel.ts";

/** A channel, and the connection that it is on. */
export interface OpenChannel {
  readonly link: Link;
  readonly channel: PublishChannel;
}

export interface Channels {
  /** The channel of an exchange, opened where there is none; or why there can be none. Never rejects. */
  of(exchange: string): OpenChannel | Promise<OpenChannel | PublishFailed>;
  /** Largest body that the server takes, once it said so. */
  readonly largestBody: number;
  /** Closes them all, and waits for that for half a second at most. Never rejects. */
  close(): Promise<void>;
}

/** Exchanges come out of the mapping, so a faulty one can make up any number of them; a server allows 2,047 channels. */
const MAX_CHANNELS = 64;
/** A missing or forbidden exchange is asked for at most this often, however many publishes want it. */
const REFUSED_FOR_MS = 1_000;

export function createChannels(connection: Connection): Channels {
  const channels = new Map<string, OpenChannel>();
  const opening = new Map<string, Promise<OpenChannel | PublishFailed>>();
  const refused = new Map<string, { readonly failure: PublishFailed; readonly untilMs: number }>();
  let largestBody = Number.POSITIVE_INFINITY;
  let lastLink: Link | undefined;

  function ended(exchange: string, { said, proven, unanswered }: ChannelEnded): Handed | undefined {
    if (isAboutExchange(said) && !proven) {
      if (refused.size >= MAX_CHANNELS) refused.clear();
      const untilMs = performance.now() + REFUSED_FOR_MS;
      refused.set(exchange, { failure: failureOfEnd({ exchange, said, proven }), untilMs });
    }
    const size = largestBodyIn(said);
    if (size === undefined) return undefined;
    largestBody = Math.min(largestBody, size.largest);
    return unanswered.find(({ contentBytes }) => contentBytes === size.sent);
  }

  async function open(exchange: string): Promise<OpenChannel | PublishFailed> {
    const link = await connection.open();
    if ("status" in link) return link;
    // It would not answer, and must not be taken for dead.
    if (link.blocked !== undefined) return blockedBy(link.blocked);
    // A server is restarted for another limit.
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
      keep(exchange, opened);
      return opened;
    } catch (error) {
      const { code, reason } = link.lost ?? saidBy(error);
      return failure("connection", code, `${link.label}: ${reason}`);
    }
  }

  function keep(exchange: string, opened: OpenChannel): void {
    channels.delete(exchange); // to the end of the map: the one that was opened first goes first
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
      const no = refused.get(exchange);
      if (no !== undefined && performance.now() < no.untilMs) return Promise.resolve(no.failure);
      const running = opening.get(exchange);
      if (running !== undefined) return running;
      const started = open(exchange).finally(() => opening.delete(exchange));
      opening.set(exchange, started);
      return started;
    },
    get largestBody() {
      return largestBody;
    },
    async close() {
      const closing = [...channels.values()].map(({ channel }) => channel.close());
      channels.clear();
      await within(Promise.all(closing), GOODBYE_MS, () => undefined).catch(() => undefined);
    },
  };
}
