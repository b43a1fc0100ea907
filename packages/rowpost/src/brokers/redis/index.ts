/**
 * Redis Streams: each message is one XADD to the stream of its topic, through ioredis or a client of its shape. See docs/brokers/redis.md for
 * the fields of an entry and for what `sent` is worth on a server.
 */

import { BrokerError } from "../../runtime/errors.ts";
import { createRequestSlots } from "../../runtime/request-slots.ts";
import type { Broker, PublishResult } from "../broker.ts";
import { createConnections } from "./connections.ts";
import { type RedisOptions, settingsFrom } from "./options.ts";
import type { PieceLimits } from "./plan.ts";
import { type Publishing, publishBatch } from "./publish.ts";
import { redisOptionsFromUrl } from "./url.ts";

export type { TlsOptions as RedisTlsOptions } from "../../runtime/tls-options.ts";
export type { RedisClient } from "./client.ts";
export { decodeRedisEntry, type RedisEntry } from "./entry.ts";
export type { RedisOptions } from "./options.ts";
export { redisOptionsFromUrl } from "./url.ts";

/**
 * Messages of one write. 1 MiB is also the least that `proto-max-bulk-len` can be: what a server may refuse by closing the connection goes alone.
 */
const PIECES: PieceLimits = { messages: 512, bytes: 1_048_576 };
/** What is on its way at once, over all calls, so that large bodies do not fill the memory. */
const MAX_BYTES_IN_FLIGHT = 16_777_216;

/**
 * A broker that publishes to Redis Streams. Opens nothing until the first `publish` or `check`. Throws `ConfigurationError` for wrong options;
 * without `ioredis` its `check` rejects with the line that installs it (a client that is given needs no package).
 *
 * The receipt of a message (`message_id`) is the id of its entry.
 */
export function redis(options: RedisOptions): Broker {
  const settings = settingsFrom(options);
  const connections = createConnections(settings);
  const closing = new AbortController();
  const publishing: Publishing = {
    settings,
    connections,
    slots: createRequestSlots({ maxBytes: MAX_BYTES_IN_FLIGHT }),
    pieces: PIECES,
    closing: closing.signal,
  };
  let closed: Promise<void> | undefined;

  return {
    name: "redis",
    features: {
      ordering: "key",
      delay: false,
      reportsUnknownTopic: !settings.createsStreams,
      maxBodyBytes: settings.maxBodyBytes,
    },
    async publish(batch, { signal }) {
      return closed === undefined ? await publishBatch(publishing, batch, signal) : batch.map(() => CLOSED);
    },
    async check() {
      const refusal = await connections.verify();
      if (refusal !== undefined) {
        const { code, reason } = refusal;
        throw new BrokerError(code, `Redis cannot be used: ${reason}`, { retriable: !LASTING.has(code) });
      }
    },
    close() {
      if (closed === undefined) {
        closing.abort(new Error("the redis broker was closed"));
        closed = connections.close();
      }
      return closed;
    },
  };
}

/** The broker of a URL such as `redis://127.0.0.1:6379/0?prefix=shop:`; see {@link redisOptionsFromUrl}. */
export function redisFromUrl(
  url: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Broker {
  return redis(redisOptionsFromUrl(url, environment));
}

/** Somebody has to change something before these go away. */
const LASTING: ReadonlySet<string> = new Set([
  "NOAUTH",
  "WRONGPASS",
  "NOPERM",
  "EVICTION_POLICY",
  "UNKNOWN_COMMAND",
  "MISSING_PEER",
  "CLOSED",
]);

const CLOSED: PublishResult = {
  status: "failed",
  scope: "connection",
  retriable: true,
  code: "CLOSED",
  reason: "the redis broker was closed; make a new one",
};
