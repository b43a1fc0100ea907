/**
 * Redis Streams: each message is one XADD to the stream of its topic, through ioredis or a similar
 * client. See docs/brokers/redis.md.
 */

import { BrokerError } from "../../runtime/errors.ts";
import type { Broker } from "../broker.ts";
import { publishOn } from "../publishing/keeper.ts";
import { createBroker } from "../publishing/lifecycle.ts";
import { inTurns, topicOf } from "../publishing/turns.ts";
import { createWindow } from "../publishing/window.ts";
import { createConnections } from "./connections.ts";
import { type RedisOptions, settingsFrom } from "./options.ts";
import type { PieceLimits } from "./plan.ts";
import { type Publishing, publishBatch } from "./publish.ts";
import { redisOptionsFromUrl } from "./url.ts";

export type { TlsOptions as RedisTlsOptions } from "../settings/tls-options.ts";
export type { RedisClient } from "./client.ts";
export { decodeRedisEntry, type RedisEntry } from "./entry.ts";
export type { RedisOptions } from "./options.ts";
export { redisOptionsFromUrl } from "./url.ts";

/**
 * Limits of one write. `proto-max-bulk-len` is never below 1 MiB, so a field that a server may
 * refuse is sent alone.
 */
const PIECES: PieceLimits = { messages: 512, bytes: 1_048_576 };
const MAX_BYTES_IN_FLIGHT = 16_777_216;

/**
 * A broker that publishes to Redis Streams. Connects at the first `publish` or `check`. Throws
 * `ConfigurationError` for invalid options. The receipt (`message_id`) is the id of the entry.
 */
export function redis(options: RedisOptions): Broker {
  const settings = settingsFrom(options);
  const connections = createConnections(settings);
  const publishing: Publishing = {
    settings,
    window: createWindow({ bytes: MAX_BYTES_IN_FLIGHT }),
    pieces: PIECES,
  };

  return createBroker({
    name: "redis",
    title: "redis",
    target: settings.target,
    features: () => ({
      ordering: "key",
      reportsUnknownTopic: !settings.createsStreams,
      maxBodyBytes: settings.maxBodyBytes,
    }),
    publish: (batch, scope) =>
      inTurns(batch, scope, topicOf, (messages) =>
        publishOn(connections, messages, scope, {
          label: settings.label,
          publish: (link) => publishBatch(publishing, connections.lend(link), messages, scope),
        }),
      ),
    async check() {
      const refusal = await connections.verify();
      if (refusal !== undefined) {
        const { code, reason } = refusal;
        throw new BrokerError(code, `Redis cannot be used: ${reason}`, { retriable: !LASTING.has(code) });
      }
    },
    close: () => connections.close(),
  });
}

/** The broker of `redis://127.0.0.1:6379/0?prefix=shop:`; see {@link redisOptionsFromUrl}. */
export function redisFromUrl(
  url: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Broker {
  return redis(redisOptionsFromUrl(url, environment));
}

const LASTING: ReadonlySet<string> = new Set([
  "NOAUTH",
  "WRONGPASS",
  "NOPERM",
  "EVICTION_POLICY",
  "UNKNOWN_COMMAND",
  "MISSING_PEER",
  "CLOSED",
]);
