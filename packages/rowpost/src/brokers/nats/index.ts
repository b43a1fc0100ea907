/**
 * NATS JetStream through `@nats-io/transport-node`. See `docs/brokers/nats.md` for what goes where
 * in a NATS message.
 *
 * Publishing is done on the core connection, with the receipts of all messages on one subscription,
 * and not with the JetStream client's `publish`: that one makes two promises and a timer for each
 * message, retries by itself, and calls a missing stream "not enabled". Measured with 400-byte
 * bodies, five headers, four calls of 500 side by side, server and client on the same two cores:
 * 25,000 to 27,000 messages a second through its `publish` (41 to 45 ms of CPU for 1,000), 45,000
 * to 66,000 through this adapter (14 to 21 ms).
 */

import type { Broker, PublishFailed } from "../broker.ts";
import { type AbortScope, orAborted } from "../publishing/abort-scope.ts";
import { failed, unusableFailure } from "../publishing/failures.ts";
import { createBroker } from "../publishing/lifecycle.ts";
import { ABORTED, failBatch } from "../publishing/results.ts";
import { createWindow } from "../publishing/window.ts";
import { targetOf } from "../settings/server-address.ts";
import { checkServer } from "./check.ts";
import { loadNats } from "./client.ts";
import type { Link } from "./link.ts";
import { createLinks, type Links } from "./links.ts";
import { type NatsOptions, type Settings, settingsFrom } from "./options.ts";
import { type Publishing, publishBatch } from "./publish.ts";
import { createStreams } from "./streams.ts";
import { natsOptionsFromUrl } from "./url.ts";

export type { TlsOptions as NatsTlsOptions } from "../settings/tls-options.ts";
export { decodeNatsHeaders } from "./carry.ts";
export type { NatsOptions } from "./options.ts";
export { natsOptionsFromUrl } from "./url.ts";

/**
 * A broker that publishes to NATS JetStream. Opens nothing until the first `publish` or `check`.
 * Throws `ConfigurationError` for wrong options. The receipt of a message (`message_id`) is
 * `stream:sequence`.
 */
export function nats(options: NatsOptions): Broker {
  const settings = settingsFrom(options);
  const publishing: Publishing = {
    settings,
    streams: createStreams(settings),
    window: createWindow({ loads: settings.maxInFlight }),
  };
  let opening: Promise<Links> | undefined;
  let links: Links | undefined;

  async function open(): Promise<Links> {
    opening ??= openLinks(settings);
    try {
      links = await opening;
      return links;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  }

  /** Undefined: the call ended first. */
  async function link(scope: AbortScope): Promise<Link | PublishFailed | undefined> {
    const ready = links?.current();
    if (ready !== undefined) return ready;
    try {
      return await orAborted((await open()).link(), scope);
    } catch (error) {
      return unusableFailure(error);
    }
  }

  return createBroker({
    name: "nats",
    title: "NATS",
    target: targetOf(settings.servers),
    // The server limits headers and body together (max_payload).
    features: () => ({ ordering: "key", reportsUnknownTopic: true, maxBodyBytes: settings.maxBodyBytes }),
    async publish(batch, scope) {
      const found = await link(scope);
      if (found !== undefined && !("scope" in found)) return await publishBatch(publishing, found, batch, scope);
      return scope.ending === "closed" ? batch.map(() => ABORTED) : failBatch(batch, found ?? TOO_SLOW);
    },
    async check() {
      await checkServer(await open(), settings);
    },
    async close() {
      const opened = await opening?.catch(() => undefined);
      await opened?.close();
    },
  });
}

/** The broker of `nats://host1:4222,host2:4222?stream=ORDERS`; see {@link natsOptionsFromUrl}. */
export function natsFromUrl(url: string, env: Readonly<Record<string, string | undefined>> = process.env): Broker {
  return nats(natsOptionsFromUrl(url, env));
}

/** A connection that was handed in needs no client of ours. */
async function openLinks(settings: Settings): Promise<Links> {
  return createLinks(settings, settings.connection === undefined ? await loadNats() : undefined);
}

const TOO_SLOW = failed("connection", "CONNECT_TIMEOUT", "no connection to NATS before the publish deadline");
