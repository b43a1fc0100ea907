/**
 * Registers us as a producer or consumer: a telemetry stream with settings both ways, and
 * heartbeats. Messages are accepted without it, but it carries the server's limits, prevents the
 * disconnect after 120 idle seconds, and lists producers for operators.
 */

import { randomUUID } from "node:crypto";
import { hostname, platform, release } from "node:os";
import { CLOSE_WITHIN_MS } from "../../runtime/deadline.ts";
import { type CallResult, type Channel, type Connection, createConnection } from "./connection.ts";
import { failureOfStatus, type RocketmqStatus } from "./failures.ts";
import type { GrpcRuntime, GrpcStream } from "./grpc.ts";
import { CLIENT_VERSION, createCallMetadata } from "./metadata.ts";
import type { Settings } from "./options.ts";

export interface Session {
  /** Opens the session if needed; cheap otherwise. */
  touch(): void;
  /** Whether the server has answered our settings. A consumer gets nothing before. */
  isKnown(): boolean;
  /** Why the last telemetry stream ended. Undefined while it works. */
  trouble(): string | undefined;
  /** Largest body from the server's settings; undefined until they arrive. */
  maxBodyBytes(): number | undefined;
  /** Deliveries of a message to the group; undefined until the server's settings arrive. */
  maxDeliveries(): number | undefined;
  /** Tells the server, and ends timers and stream. Never rejects. */
  close(): Promise<void>;
}

export interface SessionOptions {
  readonly runtime: GrpcRuntime;
  readonly connection: Connection;
  readonly namespace: string;
  readonly requestTimeoutMs: number;
  readonly topics: () => string[];
  readonly subscriber?: { readonly group: object; readonly subscription: object } | undefined;
}

/** A connection with its own id, and its session; neither is opened yet. */
export function openClient(
  runtime: GrpcRuntime,
  { endpoints, keys, namespace, requestTimeoutMs, tls }: Settings,
  roles: Pick<SessionOptions, "topics" | "subscriber">,
): { readonly connection: Connection; readonly session: Session } {
  const clientId = `rowpost@${hostname().replace(/[^\x21-\x7e]/g, "_")}@${process.pid}@${randomUUID()}`;
  const metadata = createCallMetadata({ grpc: runtime.grpc, clientId, namespace, keys });
  const connection = createConnection({ runtime, endpoints, tls, metadata });
  const session = createSession({ runtime, connection, namespace, requestTimeoutMs, ...roles });
  return { connection, session };
}

/** Queries a topic. Never rejects. */
export async function askForRoute(
  { connection, runtime }: Pick<SessionOptions, "connection" | "runtime">,
  { namespace, requestTimeoutMs: timeoutMs }: Settings,
  topic: string,
): Promise<CallResult> {
  const endpoints = addressesOf(connection.current().endpoint);
  const request = { topic: resourceOf(namespace, topic), endpoints };
  return await connection.call(runtime.methods.QueryRoute, request, { timeoutMs });
}

/** As the official clients do. */
const HEARTBEAT_MS = 10_000;
/** An ended stream is reopened after 1 to 10 s; after that, at once by a publish. */
const REOPEN_MIN_MS = 1000;
const REOPEN_MAX_MS = 10_000;

interface Limits {
  maxBodyBytes?: number;
  maxDeliveries?: number;
}

interface Telemetry {
  channel(): Channel | undefined;
  /** Opens it if it is closed and did not end just now. */
  open(): void;
  update(): void;
  drop(): void;
  readonly limits: Limits;
  isKnown(): boolean;
  trouble(): string | undefined;
  close(): void;
}

interface Running {
  readonly stream: GrpcStream;
  readonly channel: Channel;
  topics: number;
  isKnown: boolean;
}

function createTelemetry(options: SessionOptions): Telemetry {
  const { connection, runtime } = options;
  let running: Running | undefined;
  let reopen: NodeJS.Timeout | undefined;
  let reopenMs = REOPEN_MIN_MS;
  const limits: Limits = {};
  let trouble: string | undefined;
  let closed = false;

  const lost = (stream: GrpcStream): void => {
    if (running?.stream !== stream) return;
    running = undefined;
    if (closed) return;
    reopen = setTimeout(() => {
      reopen = undefined;
      open();
    }, reopenMs).unref();
    reopenMs = Math.min(reopenMs * 2, REOPEN_MAX_MS);
  };
  const open = (): void => {
    if (closed || running !== undefined || reopen !== undefined) return;
    const { stream, channel } = connection.stream(runtime.methods.Telemetry);
    const topics = options.topics();
    running = { stream, channel, topics: topics.length, isKnown: false };
    stream.on("data", (command) => receive(stream, command as Command));
    // A producer gets the error with its next call.
    stream.on("error", ({ details, message }) => {
      trouble = details || message;
      lost(stream);
    });
    stream.on("end", () => lost(stream));
    stream.write({ settings: settingsOf(channel, topics, options) });
  };
  const receive = (stream: GrpcStream, command: Command): void => {
    const failure = failureOfStatus(command.status ?? { code: "OK" });
    if (failure !== undefined) {
      trouble = `${failure.code}: ${failure.reason}`;
      return;
    }
    if (command.settings !== undefined && running?.stream === stream) {
      running.isKnown = true;
      trouble = undefined;
    }
    learn(limits, command.settings);
    reopenMs = REOPEN_MIN_MS;
    if (command.reconnectEndpointsCommand !== undefined) connection.reconnect();
  };
  const drop = (): void => {
    const { stream } = running ?? {};
    running = undefined;
    stream?.cancel();
  };

  return {
    channel: () => running?.channel,
    open,
    update() {
      const topics = options.topics();
      if (running === undefined || running.topics === topics.length) return;
      running.topics = topics.length;
      running.stream.write({ settings: settingsOf(running.channel, topics, options) });
    },
    drop,
    limits,
    isKnown: () => running?.isKnown === true,
    trouble: () => trouble,
    close() {
      closed = true;
      clearTimeout(reopen);
      drop();
    },
  };
}

function createSession(options: SessionOptions): Session {
  const { connection, runtime } = options;
  const telemetry = createTelemetry(options);
  const { subscriber } = options;
  const self = subscriber === undefined ? PRODUCER : { clientType: CONSUMER, group: subscriber.group };
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const attend = (): void => {
    const channel = telemetry.channel();
    if (channel !== undefined && channel !== connection.current()) telemetry.drop(); // the connection went elsewhere
    telemetry.open();
  };
  const heartbeat = async (): Promise<void> => {
    attend();
    telemetry.update();
    const result = await connection.call(runtime.methods.Heartbeat, self, { timeoutMs: options.requestTimeoutMs });
    const status = result.ok ? (result.response as { status?: RocketmqStatus }).status : undefined;
    if (status?.code === UNKNOWN_CLIENT) telemetry.drop(); // the server forgot us: register again at the next turn
  };

  return {
    touch() {
      if (closed) return;
      // The next call reports any error.
      timer ??= setInterval(() => void heartbeat().catch(() => undefined), HEARTBEAT_MS).unref();
      attend();
    },
    maxBodyBytes: () => telemetry.limits.maxBodyBytes,
    maxDeliveries: () => telemetry.limits.maxDeliveries,
    isKnown: () => telemetry.isKnown(),
    trouble: () => telemetry.trouble(),
    async close() {
      closed = true;
      clearInterval(timer);
      const leaving = subscriber === undefined ? {} : { group: subscriber.group };
      if (telemetry.channel() !== undefined && connection.connected()) {
        await connection.call(runtime.methods.NotifyClientTermination, leaving, { timeoutMs: CLOSE_WITHIN_MS });
      }
      telemetry.close();
    },
  };
}

const CONSUMER = "SIMPLE_CONSUMER";

export const PRODUCER: { readonly clientType: string } = { clientType: "PRODUCER" };
/** Answer to a heartbeat without settings: the server is up and the login works. */
export const UNKNOWN_CLIENT = "UNRECOGNIZED_CLIENT_TYPE";

interface Command {
  readonly status?: RocketmqStatus;
  readonly settings?: {
    readonly publishing?: { readonly maxBodySize?: number };
    readonly backoffPolicy?: { readonly maxAttempts?: number };
  };
  readonly reconnectEndpointsCommand?: object;
}

function learn(limits: Limits, { backoffPolicy, publishing }: Command["settings"] = {}): void {
  if (publishing?.maxBodySize) limits.maxBodyBytes = publishing.maxBodySize;
  if (backoffPolicy?.maxAttempts) limits.maxDeliveries = backoffPolicy.maxAttempts;
}

function settingsOf({ endpoint }: Channel, topics: readonly string[], options: SessionOptions): object {
  const { subscriber } = options;
  return {
    clientType: subscriber === undefined ? "PRODUCER" : CONSUMER,
    accessPoint: addressesOf(endpoint),
    requestTimeout: {
      seconds: Math.floor(options.requestTimeoutMs / 1000),
      nanos: (options.requestTimeoutMs % 1000) * 1_000_000,
    },
    ...(subscriber === undefined
      ? { publishing: { topics: topics.map((name) => resourceOf(options.namespace, name)), validateMessageType: true } }
      : { subscription: subscriber.subscription }),
    userAgent: {
      language: "NODE_JS",
      version: CLIENT_VERSION,
      platform: `${platform()} ${release()} node ${process.versions.node}`,
      hostname: hostname(),
    },
  };
}

function addressesOf({ host, port, scheme }: Channel["endpoint"]): object {
  return { scheme, addresses: [{ host, port }] };
}

export function resourceOf(namespace: string, name: string): object {
  return namespace === "" ? { name } : { resourceNamespace: namespace, name };
}
