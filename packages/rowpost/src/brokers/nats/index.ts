/**
 * NATS JetStream through `@nats-io/transport-node`. See `docs/brokers/nats.md` for what goes where in a NATS message.
 *
 * Publishing is done on the core connection, with the receipts of all messages on one subscription, and not with the JetStream client's
 * `publish`: that one makes two promises and a timer for each message, retries by itself, and calls a missing stream "not enabled". Measured
 * with 400-byte bodies, five headers, four calls of 500 side by side, server and client on the same two cores: 25,000 to 27,000 messages a
 * second through its `publish` (41 to 45 ms of CPU for 1,000), 45,000 to 66,000 through this adapter (14 to 21 ms).
 */

import { onAbort } from "../../runtime/abort.ts";
import { BrokerError, describeError } from "../../runtime/errors.ts";
import { createMessageWindow } from "../../runtime/message-window.ts";
import { ABORTED, type Broker } from "../broker.ts";
import { checkSession } from "./check.ts";
import { loadNats } from "./client.ts";
import { connectionFailure, type Failure } from "./failures.ts";
import type { Link } from "./link.ts";
import { type NatsOptions, type Settings, settingsFrom } from "./options.ts";
import { failBatch, type Publishing, publishBatch } from "./publish.ts";
import { createSession, type Session } from "./session.ts";
import { createStreams } from "./streams.ts";
import { natsOptionsFromUrl } from "./url.ts";

export type { TlsOptions as NatsTlsOptions } from "../../runtime/tls-options.ts";
export { decodeNatsHeaders } from "./carry.ts";
export type { NatsOptions } from "./options.ts";
export { natsOptionsFromUrl } from "./url.ts";

/** Most bytes on their way at once, so that large messages do not fill the memory: 32 of the largest (1 MiB unless configured otherwise). */
const MAX_BYTES_IN_FLIGHT = 33_554_432;

/**
 * A broker that publishes to NATS JetStream. Opens nothing until the first `publish` or `check`. Throws `ConfigurationError` for wrong options; without
 * `@nats-io/transport-node` its `check` rejects with `MissingPeerError`.
 *
 * The receipt of a message (`message_id`) is `stream:sequence`.
 */
export function nats(options: NatsOptions): Broker {
  const settings = settingsFrom(options);
  const publishing: Publishing = {
    settings,
    streams: createStreams(settings),
    window: createMessageWindow({ messages: settings.maxInFlight, bytes: MAX_BYTES_IN_FLIGHT }),
  };
  let opening: Promise<Session> | undefined;
  let session: Session | undefined;
  let closed: Promise<void> | undefined;

  async function open(): Promise<Session> {
    opening ??= openSession(settings);
    try {
      session = await opening;
      return session;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  }

  async function link(signal: AbortSignal): Promise<Link | Failure> {
    const ready = session?.current();
    if (ready !== undefined) return ready;
    try {
      return await beforeAbort((await open()).link(), signal);
    } catch (error) {
      // The peer is missing: no message's fault, and nothing was sent.
      const code = error instanceof Error && "code" in error ? String(error.code) : "NATS_UNUSABLE";
      return connectionFailure(code, describeError(error));
    }
  }

  return {
    name: "nats",
    // The server itself has no limit of the body alone: it counts headers and body together (max_payload).
    features: { ordering: "key", delay: false, reportsUnknownTopic: true, maxBodyBytes: settings.maxBodyBytes },
    async publish(batch, { signal }) {
      if (signal.aborted) return batch.map(() => ABORTED);
      if (closed !== undefined) return failBatch(batch, CLOSED);
      if (batch.length === 0) return [];
      const found = await link(signal);
      if ("scope" in found) return failBatch(batch, found);
      return await publishBatch(publishing, found, batch, signal);
    },
    async check() {
      if (closed !== undefined) throw new BrokerError("CLOSED", "this NATS broker was closed; make a new one");
      await checkSession(await open(), settings);
    },
    close() {
      closed ??= (async () => {
        const opened = await opening?.catch(() => undefined);
        await opened?.close();
      })();
      return closed;
    },
  };
}

/** The broker of a URL such as `nats://host1:4222,host2:4222?stream=ORDERS`; secrets come from the environment. */
export function natsFromUrl(url: string, env: Readonly<Record<string, string | undefined>> = process.env): Broker {
  return nats(natsOptionsFromUrl(url, env));
}

/** A connection that was handed in needs no client of ours. */
async function openSession(settings: Settings): Promise<Session> {
  return createSession(settings, settings.connection === undefined ? await loadNats() : undefined);
}

/** What was found, or a failure as soon as the signal is aborted. */
function beforeAbort(finding: Promise<Link | Failure>, signal: AbortSignal): Promise<Link | Failure> {
  return new Promise((resolve) => {
    const stopFollowing = onAbort(signal, () => resolve(TOO_SLOW));
    void finding.then((found) => {
      stopFollowing();
      resolve(signal.aborted ? TOO_SLOW : found);
    });
  });
}

const CLOSED = connectionFailure("CLOSED", "the NATS broker was closed");
const TOO_SLOW = connectionFailure("CONNECT_TIMEOUT", "no connection to NATS before the publish deadline");
