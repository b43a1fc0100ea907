/**
 * Calls to the proxy: one channel to one endpoint at a time, the next endpoint on failure. Each
 * failure tells whether the request was handed to the server.
 *
 * grpc-js reconnects by itself, with two gaps closed here. It has no timeout for a connection that
 * is accepted but silent (a frozen server, a wrong port), so a call would wait for its whole
 * deadline. And it keeps using a connection whose peer went silent; here a missed deadline replaces
 * the channel.
 */

import { onAbort } from "../../runtime/abort.ts";
import { describeError } from "../../runtime/errors.ts";
import { type AbortScope, createAbortScope } from "../publishing/abort-scope.ts";
import type { TlsOptions } from "../settings/tls-options.ts";
import type { Endpoint } from "./endpoints.ts";
import {
  CHANNEL_READY,
  CHANNEL_TRANSIENT_FAILURE,
  GRPC_CANCELLED,
  GRPC_DEADLINE_EXCEEDED,
  GRPC_UNAVAILABLE,
  type GrpcCall,
  type GrpcClient,
  type GrpcError,
  type GrpcMetadata,
  type GrpcMethod,
  type GrpcRuntime,
  type GrpcStream,
} from "./grpc.ts";
import type { createCallMetadata } from "./metadata.ts";

export interface CallFailure {
  readonly grpcCode: number;
  readonly details: string;
  /** Such as `ECONNREFUSED`, when no connection was made. */
  readonly connectCode: string | undefined;
  /** False: certainly not handed over. True: it may have been carried out. */
  readonly written: boolean;
}

export type CallResult = { readonly ok: true; readonly response: unknown } | ({ readonly ok: false } & CallFailure);

export interface Channel {
  readonly endpoint: Endpoint;
  readonly client: GrpcClient;
}

export interface Connection {
  /** One unary call; `serialize` replaces proto-loader's. Never rejects. */
  call(method: GrpcMethod, message: unknown, options: CallOptions): Promise<CallResult>;
  /** A call with many answers. Resolves when the server has ended it, or to the failure. */
  receive(method: GrpcMethod, message: unknown, options: ReceiveOptions): Promise<CallFailure | undefined>;
  stream(method: GrpcMethod): { readonly stream: GrpcStream; readonly channel: Channel };
  current(): Channel;
  connected(): boolean;
  /** Replaces the current channel, for example when the server asks for it. */
  reconnect(): void;
  close(): void;
}

export interface CallOptions {
  readonly timeoutMs: number;
  /** Cancels the call. Default: only its deadline and `close` do. */
  readonly scope?: AbortScope;
  readonly serialize?: (message: unknown) => Buffer;
}

export interface ReceiveOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly take: (answer: unknown) => void;
}

export interface ConnectionOptions {
  readonly runtime: GrpcRuntime;
  readonly endpoints: readonly Endpoint[];
  readonly tls: TlsOptions | undefined;
  readonly metadata: ReturnType<typeof createCallMetadata>;
}

/** Time to connect, with TLS and HTTP/2 settings; then the next endpoint is tried. */
const CONNECT_TIMEOUT_MS = 3000;

/** A call aborted after this long without an answer makes its connection suspect. */
const SILENCE_MS = 1000;

/**
 * grpc-js retries after 0.1 to 0.5 s instead of up to 2 minutes: full speed half a second after the
 * server is back, for two refused connections a second.
 */
const CHANNEL_OPTIONS: Readonly<Record<string, unknown>> = {
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 500,
  // Finds a restarted pod's new address within 2 s instead of 30.
  "grpc.dns_min_time_between_resolutions_ms": 2000,
  "grpc.service_config_disable_resolution": 1,
  // Lets `close` close its sockets, and keeps suspect ones from other adapters.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.max_send_message_length": -1,
  "grpc.enable_channelz": 0,
};

export function createConnection(options: ConnectionOptions): Connection {
  const { runtime, endpoints } = options;
  const channels = new Map<Endpoint, Channel>();
  const lifetime = createAbortScope();
  let index = 0;

  const endpointAt = (at: number): Endpoint => {
    const endpoint = endpoints[at % endpoints.length];
    if (endpoint === undefined) throw new RangeError("no endpoint");
    return endpoint;
  };
  const current = (): Channel => {
    const endpoint = endpointAt(index);
    const open = channels.get(endpoint);
    if (open !== undefined) return open;
    const channel: Channel = { endpoint, client: openClient(runtime, endpoint, options.tls) };
    channels.set(endpoint, channel);
    return channel;
  };
  const drop = (channel: Channel): void => {
    if (channels.get(channel.endpoint) !== channel) return;
    channels.delete(channel.endpoint);
    channel.client.close(); // lets its running calls end
  };
  const leave = (channel: Channel, failure: CallFailure): void => {
    if (endpointAt(index) === channel.endpoint) index = (index + 1) % endpoints.length;
    if (failure.written && failure.grpcCode === GRPC_DEADLINE_EXCEEDED) drop(channel);
  };

  const call: Connection["call"] = async (method, message, callOptions) => {
    const endsAt = Date.now() + callOptions.timeoutMs;
    const scope = callOptions.scope ?? lifetime;
    for (let tries = 1; ; tries += 1) {
      if (lifetime.aborted) return notWritten(GRPC_UNAVAILABLE, "the broker adapter was closed", "CLOSED");
      const channel = current();
      const startedAt = Date.now();
      const result = await callOn(channel, method, message, {
        ...callOptions,
        scope,
        endsAt,
        metadata: options.metadata(),
      });
      if (result.ok) return result;
      // As after a deadline: the server was silent for that long.
      if (scope.aborted && result.written && Date.now() - startedAt >= SILENCE_MS) drop(channel);
      if (scope.aborted || !concernsEndpoint(result)) return result;
      leave(channel, result);
      if (result.written || tries >= endpoints.length || Date.now() >= endsAt) return result;
    }
  };

  return {
    async call(method, message, callOptions) {
      try {
        return await call(method, message, callOptions);
      } catch (error) {
        // Thrown before anything is written: invalid certificates, or a channel just closed.
        return notWritten(GRPC_UNAVAILABLE, describeError(error), lifetime.aborted ? "CLOSED" : "CLIENT_ERROR");
      }
    },
    async receive(method, message, receiveOptions) {
      const channel = current();
      const failure = await receiveOn(channel, method, message, { ...receiveOptions, metadata: options.metadata() });
      if (failure !== undefined && !receiveOptions.signal.aborted && concernsEndpoint(failure)) leave(channel, failure);
      return failure;
    },
    current,
    stream(method) {
      const channel = current();
      const stream = channel.client.makeBidiStreamRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        options.metadata(),
        {},
      );
      return { stream, channel };
    },
    connected: () => channels.get(endpointAt(index))?.client.getChannel().getConnectivityState(false) === CHANNEL_READY,
    reconnect() {
      const channel = channels.get(endpointAt(index));
      if (channel !== undefined) drop(channel);
    },
    close() {
      lifetime.abort();
      for (const channel of channels.values()) channel.client.close();
      channels.clear();
    },
  };
}

/** Other status codes come from the server, or from our own abort. */
function concernsEndpoint(failure: CallFailure): boolean {
  return failure.grpcCode === GRPC_UNAVAILABLE || failure.grpcCode === GRPC_DEADLINE_EXCEEDED;
}

interface AttemptOptions extends CallOptions {
  readonly scope: AbortScope;
  readonly endsAt: number;
  readonly metadata: ReturnType<ConnectionOptions["metadata"]>;
}

async function callOn(
  channel: Channel,
  method: GrpcMethod,
  message: unknown,
  options: AttemptOptions,
): Promise<CallResult> {
  const { client } = channel;
  const target = client.getChannel().getTarget();
  if (client.getChannel().getConnectivityState(true) !== CHANNEL_READY) {
    const startedAt = Date.now();
    const deadline = Math.min(startedAt + CONNECT_TIMEOUT_MS, options.endsAt);
    const isAnswered = await connecting(client, deadline, options.scope);
    if (options.scope.aborted) return notWritten(GRPC_CANCELLED, "aborted while connecting", undefined);
    if (!isAnswered) {
      return notWritten(GRPC_UNAVAILABLE, silence(channel.endpoint, Date.now() - startedAt), "CONNECT_TIMEOUT");
    }
  }
  return new Promise((resolve) => {
    let call: GrpcCall | undefined;
    let forget: (() => void) | undefined;
    const done = (error: GrpcError | null, response?: unknown): void => {
      forget?.();
      resolve(error === null ? { ok: true, response } : failed(error, call, target));
    };
    call = client.makeUnaryRequest(
      method.path,
      options.serialize ?? method.requestSerialize,
      method.responseDeserialize,
      message,
      options.metadata,
      { deadline: options.endsAt },
      done,
    );
    forget = options.scope.onAbort(() => call?.cancel());
  });
}

function receiveOn(
  { client }: Channel,
  method: GrpcMethod,
  message: unknown,
  { metadata, signal, take, timeoutMs }: ReceiveOptions & { readonly metadata: GrpcMetadata },
): Promise<CallFailure | undefined> {
  return new Promise((resolve) => {
    const { path, requestSerialize, responseDeserialize } = method;
    const deadline = Date.now() + timeoutMs;
    const answers = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, message, metadata, {
      deadline,
    });
    const forget = onAbort(signal, () => answers.cancel());
    answers.on("data", take);
    answers.on("error", ({ code = 2, details = "", message: words }) => {
      forget();
      // The request had no effect that must not happen twice.
      resolve({ grpcCode: code, details: details === "" ? words : details, connectCode: undefined, written: true });
    });
    answers.on("end", () => {
      forget();
      resolve(undefined);
    });
  });
}

/** True once a call would fail or succeed at once; false after the deadline. */
async function connecting(client: GrpcClient, deadline: number, scope: AbortScope): Promise<boolean> {
  const channel = client.getChannel();
  while (!scope.aborted) {
    const state = channel.getConnectivityState(true);
    // On a failed connection the call fails at once, with the reason.
    if (state === CHANNEL_READY || state === CHANNEL_TRANSIENT_FAILURE) return true;
    if (Date.now() >= deadline) return false;
    await new Promise<void>((resolve) => {
      const forget = scope.onAbort(resolve);
      try {
        channel.watchConnectivityState(state, deadline, () => {
          forget();
          resolve();
        });
      } catch {
        resolve(); // closed meanwhile: the call reports it
      }
    });
    if (client.getChannel().getConnectivityState(false) > CHANNEL_TRANSIENT_FAILURE) return true;
  }
  return false;
}

function failed(error: GrpcError, call: GrpcCall | undefined, target: string): CallResult {
  const peer = call?.getPeer() ?? target;
  const written = peer !== target && peer !== "unknown";
  const details = error.details === undefined || error.details === "" ? error.message : error.details;
  return {
    ok: false,
    grpcCode: error.code ?? 2,
    details,
    written,
    connectCode: written ? undefined : /\bE[A-Z]{4,}\b/.exec(details)?.[0],
  };
}

function notWritten(grpcCode: number, details: string, connectCode: string | undefined): CallResult {
  return { ok: false, grpcCode, details, connectCode, written: false };
}

function silence(endpoint: Endpoint, afterMs: number): string {
  return (
    `no answer from ${endpoint.host}:${endpoint.port} within ${afterMs} ms: is it up, and is this the gRPC port of the proxy ` +
    "(8081 by default; 9876 is the name server and 10911 the broker)?"
  );
}

function openClient(runtime: GrpcRuntime, endpoint: Endpoint, tls: TlsOptions | undefined): GrpcClient {
  const { credentials } = runtime.grpc;
  const name = tls?.serverName;
  return new runtime.grpc.Client(
    targetOf(endpoint),
    tls === undefined
      ? credentials.createInsecure()
      : credentials.createSsl(bytesOf(tls.ca), bytesOf(tls.key), bytesOf(tls.cert), {
          rejectUnauthorized: tls.rejectUnauthorized ?? true,
        }),
    name === undefined
      ? CHANNEL_OPTIONS
      : { ...CHANNEL_OPTIONS, "grpc.ssl_target_name_override": name, "grpc.default_authority": name },
  );
}

function targetOf({ host, port, scheme }: Endpoint): string {
  if (scheme === "IPv4") return `ipv4:${host}:${port}`;
  if (scheme === "IPv6") return `ipv6:[${host}]:${port}`;
  return `dns:${host}:${port}`;
}

function bytesOf(pem: string | Uint8Array | undefined): Buffer | null {
  return pem === undefined ? null : Buffer.from(pem);
}
