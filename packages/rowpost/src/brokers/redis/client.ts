/** Structural types of ioredis (5.3.2 and newer, 6) and similar clients, and their factories. */

import { ConfigurationError } from "../../runtime/errors.ts";
import { loadedPeer } from "../settings/peer.ts";
import { nodeTls } from "../settings/tls-options.ts";
import type { Address } from "./address.ts";

/** `Redis` or `Cluster` of ioredis or iovalkey. `duplicate` copies its options and nodes. */
export interface RedisClient {
  /** True for a `Cluster`. */
  readonly isCluster: boolean;
  /** Makes the connection that is used, with the same options. */
  duplicate(...overrides: never[]): unknown;
  /** Adds the entries of a batch, on the duplicate. */
  pipeline(...commands: never[]): unknown;
}

export interface IoClient {
  readonly status: string;
  readonly isCluster: boolean;
  connect(): Promise<unknown>;
  /** Ends it now. Unanswered commands are rejected, and `end` is emitted. */
  disconnect(): void;
  on(event: "error" | "close" | "end", listener: (error?: unknown) => void): unknown;
  info(): Promise<unknown>;
  config(verb: "GET", name: string): Promise<unknown>;
  pipeline(): IoPipeline;
  nodes?(role: "master"): readonly IoClient[];
}

export interface IoPipeline {
  xadd(key: string, ...args: readonly (string | Buffer)[]): unknown;
  multi(): unknown;
  wait(replicas: number, timeoutMs: number): unknown;
  /**
   * After `multi` it adds EXEC; otherwise it sends everything and resolves with each `[error,
   * reply]`.
   */
  exec(): Promise<readonly IoReply[]>;
}

export type IoReply = readonly [error: unknown, reply?: unknown];

/** Makes a client that is not yet connected. Rejects with `MissingPeerError`. */
export type ClientFactory = () => Promise<IoClient>;

/** Time from ending a connection to closing its socket if QUIT is not answered. */
const DISCONNECT_MS = 100;

/**
 * Turns off features that could publish after the deadline or twice: the offline queue, and
 * resending (`autoResendUnfulfilledCommands`, which when off while `retryStrategy` is on forgets
 * commands, so that their promises never settle). Our clients connect once, take commands only
 * while connected, and fail all of them when the connection breaks. Client timeouts would set a
 * timer for each command; a publish has its own deadline.
 */
const ONE_CONNECTION = {
  lazyConnect: true,
  enableOfflineQueue: false,
  retryStrategy: null,
  reconnectOnError: null,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  showFriendlyErrorStack: false,
  commandTimeout: undefined,
  socketTimeout: undefined,
  blockingTimeout: undefined,
  disconnectTimeout: DISCONNECT_MS,
  maxLoadingRetryTime: 500,
  replyMapping: "legacy",
  monitor: false,
  readOnly: false,
  sentinelRetryStrategy: null,
  failoverDetector: false,
};

const CLUSTER = {
  lazyConnect: true,
  enableOfflineQueue: false,
  clusterRetryStrategy: null,
  clusterNodeRetryStrategy: null,
  // A broken pipeline may have been executed and must not be resent.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  enableAutoPipelining: false,
  showFriendlyErrorStack: false,
  scaleReads: "master",
  shardedSubscribers: false,
  redisOptions: ONE_CONNECTION,
};

export function ownClients(address: Address, connectTimeoutMs: number): ClientFactory {
  return async () => {
    const { host, port, db, username, password, tls } = address;
    const ioredis = await loadedPeer<IoredisModule>(import("ioredis"), "ioredis", {
      neededFor: "The Redis broker",
      range: "^5.3.2 || ^6.0.0",
      fits: ({ Redis }) => Redis !== undefined,
    });
    return new ioredis.Redis({
      ...ONE_CONNECTION,
      host,
      port,
      db,
      username,
      password,
      tls: tls === undefined ? undefined : nodeTls(tls),
      connectTimeout: connectTimeoutMs,
      connectionName: "rowpost",
      // ioredis would wait for a loading server with a timer that outlives the connection.
      enableReadyCheck: false,
    });
  };
}

/**
 * A factory of clients that go where the user's client goes. Not the user's own connection: it may
 * hold commands back or send them twice (both are ioredis' defaults), may be blocked by an XREAD
 * BLOCK, subscribed, or in another database by a SELECT. `duplicate` keeps nodes, sentinels,
 * credentials, TLS and `keyPrefix`, and we replace what a publish cannot be trusted with. Throws
 * {@link ConfigurationError} for what is no such client.
 */
export function duplicatesOf(client: RedisClient, what = "redis broker"): ClientFactory {
  assertShape(client, what);
  const shaped = client as unknown as {
    readonly isCluster: boolean;
    duplicate(...overrides: readonly unknown[]): IoClient;
  };
  return async () => (shaped.isCluster ? shaped.duplicate([], CLUSTER) : shaped.duplicate(ONE_CONNECTION));
}

function assertShape(client: unknown, user: string): void {
  const shape = (typeof client === "object" && client !== null ? client : {}) as Readonly<Record<string, unknown>>;
  if (["duplicate", "pipeline", "xadd"].every((name) => typeof shape[name] === "function")) return;
  const what =
    typeof shape["xAdd"] === "function" ? "is one of the package redis" : "has no duplicate, pipeline and xadd";
  throw new ConfigurationError(
    `${user}: client must be a Redis or Cluster of ioredis or iovalkey; the one given ${what}. Give such a client, or a url`,
  );
}

interface IoredisModule {
  readonly Redis: new (options: object) => IoClient;
}
