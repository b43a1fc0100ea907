/** What is used of ioredis (5.3.2 and newer, 6) and clients of its shape; how ours are made. */

import { ConfigurationError } from "../../runtime/errors.ts";
import { loadedPeer } from "../settings/peer.ts";
import { nodeTls } from "../settings/tls-options.ts";
import type { Address } from "./address.ts";

/** `Redis` or `Cluster` of ioredis or iovalkey: its options and nodes are taken by `duplicate`. */
export interface RedisClient {
  /** A `Cluster` says true. */
  readonly isCluster: boolean;
  /** Makes the connection that is used, with the same options. */
  duplicate(...overrides: never[]): unknown;
  /** Takes the entries of a batch, on the duplicate. */
  pipeline(...commands: never[]): unknown;
}

export interface IoClient {
  readonly status: string;
  readonly isCluster: boolean;
  connect(): Promise<unknown>;
  /** Ends it now. What is unanswered is rejected, and `end` is emitted. */
  disconnect(): void;
  on(event: "error" | "close" | "end", listener: (error?: unknown) => void): unknown;
  info(): Promise<unknown>;
  config(verb: "GET", name: string): Promise<unknown>;
  pipeline(): IoPipeline;
  /** Of a cluster only. */
  nodes?(role: "master"): readonly IoClient[];
}

/** Commands that go out in one piece. */
export interface IoPipeline {
  xadd(key: string, ...args: readonly (string | Buffer)[]): unknown;
  multi(): unknown;
  wait(replicas: number, timeoutMs: number): unknown;
  /** After `multi` it adds EXEC. Else it sends all, and resolves with each `[error, reply]`. */
  exec(): Promise<readonly IoReply[]>;
}

export type IoReply = readonly [error: unknown, reply?: unknown];

/** Makes a client that is not connected yet. Rejects with `MissingPeerError`. */
export type ClientFactory = () => Promise<IoClient>;

/** From the end of a connection to the end of its socket, without an answer to the QUIT. */
const DISCONNECT_MS = 100;

/**
 * What must not happen behind a publish: a command that waits for a connection beyond its deadline
 * (offline queue), or is sent again when one is back (`autoResendUnfulfilledCommands`, which also
 * forgets commands when it is off while `retryStrategy` is on: their promises never settle). So a
 * client of ours has one connection in its life, takes commands only while it is there, and fails
 * them all when it breaks. Timeouts of the client would set a timer for every command; a publish
 * has its own deadline.
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
  // A pipeline that broke may have been executed: it is not sent again behind our back.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  enableAutoPipelining: false,
  showFriendlyErrorStack: false,
  scaleReads: "master",
  shardedSubscribers: false,
  redisOptions: ONE_CONNECTION,
};

/** A factory of clients with an address of our own. */
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
      // ioredis would wait for a server that loads, with a timer that outlives the connection.
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
