/**
 * Structural types of the two optional peers, so that `rowpost/rocketmq` can be type-checked and
 * bundled without them.
 */

import { loadedPeer } from "../settings/peer.ts";
import { serviceDefinition } from "./definition.ts";

export interface GrpcMetadata {
  set(name: string, value: string): void;
}

export interface GrpcError {
  readonly code?: number | undefined;
  readonly details?: string | undefined;
  readonly message: string;
}

export interface GrpcCall {
  cancel(): void;
  getPeer(): string;
}

export interface GrpcAnswers {
  cancel(): void;
  on(event: "data", listener: (message: unknown) => void): void;
  on(event: "error", listener: (error: GrpcError) => void): void;
  on(event: "end", listener: () => void): void;
}

export interface GrpcStream extends GrpcAnswers {
  write(message: unknown): void;
  end(): void;
}

interface GrpcChannel {
  getTarget(): string;
  getConnectivityState(connect: boolean): number;
  watchConnectivityState(state: number, deadline: number, callback: (error?: Error) => void): void;
}

type Serialize = (message: unknown) => Buffer;
type Deserialize = (bytes: Buffer) => unknown;

export interface GrpcClient {
  makeUnaryRequest(
    path: string,
    serialize: Serialize,
    deserialize: Deserialize,
    message: unknown,
    metadata: GrpcMetadata,
    options: { deadline: number },
    callback: (error: GrpcError | null, response?: unknown) => void,
  ): GrpcCall;
  makeServerStreamRequest(
    path: string,
    serialize: Serialize,
    deserialize: Deserialize,
    message: unknown,
    metadata: GrpcMetadata,
    options: { deadline: number },
  ): GrpcAnswers;
  makeBidiStreamRequest(
    path: string,
    serialize: Serialize,
    deserialize: Deserialize,
    metadata: GrpcMetadata,
    options: object,
  ): GrpcStream;
  getChannel(): GrpcChannel;
  close(): void;
}

export type GrpcCredentials = object;

interface GrpcModule {
  readonly Client: new (
    target: string,
    credentials: GrpcCredentials,
    options: Readonly<Record<string, unknown>>,
  ) => GrpcClient;
  readonly Metadata: new () => GrpcMetadata;
  readonly experimental?: { readonly SUBCHANNEL_ARGS_EXCLUDE_KEY_PREFIX?: unknown };
  readonly credentials: {
    createInsecure(): GrpcCredentials;
    createSsl(
      ca: Buffer | null,
      key: Buffer | null,
      cert: Buffer | null,
      verify: { rejectUnauthorized: boolean },
    ): GrpcCredentials;
  };
}

export interface GrpcMethod {
  readonly path: string;
  readonly requestSerialize: Serialize;
  readonly responseDeserialize: Deserialize;
}

interface ProtoLoaderModule {
  fromJSON(json: object, options: object): Readonly<Record<string, unknown>>;
}

/** The methods of `apache.rocketmq.v2.MessagingService` that are used. */
export type MethodName =
  | "AckMessage"
  | "ChangeInvisibleDuration"
  | "ForwardMessageToDeadLetterQueue"
  | "Heartbeat"
  | "NotifyClientTermination"
  | "QueryRoute"
  | "ReceiveMessage"
  | "SendMessage"
  | "Telemetry";

export interface GrpcRuntime {
  readonly grpc: GrpcModule;
  readonly methods: Readonly<Record<MethodName, GrpcMethod>>;
}

export const CHANNEL_READY = 2;
export const CHANNEL_TRANSIENT_FAILURE = 3;

export const GRPC_CANCELLED = 1;
export const GRPC_DEADLINE_EXCEEDED = 4;
export const GRPC_PERMISSION_DENIED = 7;
export const GRPC_RESOURCE_EXHAUSTED = 8;
export const GRPC_UNIMPLEMENTED = 12;
export const GRPC_UNAVAILABLE = 14;
export const GRPC_UNAUTHENTICATED = 16;

const GRPC_NAMES =
  "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED".split(
    " ",
  );

/** Such as `GRPC_UNAVAILABLE` for 14: a result's `code`. */
export function grpcName(code: number): string {
  return `GRPC_${GRPC_NAMES[code] ?? code}`;
}

let loaded: Promise<GrpcRuntime> | undefined;

/** Loads the peers and the protos, once per process (60 ms). Rejects with `MissingPeerError`. */
export function loadGrpc(): Promise<GrpcRuntime> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined; // so that the next call finds a peer installed meanwhile
    throw error;
  });
  return loaded;
}

async function load(): Promise<GrpcRuntime> {
  const neededFor = "The RocketMQ broker";
  const grpc = await loadedPeer<GrpcModule>(import("@grpc/grpc-js"), "@grpc/grpc-js", {
    neededFor,
    range: "^1.13.0",
    // Up to 1.12 a call on a broken connection looks as if it had never been written. 1.13
    // introduced this constant.
    fits: ({ experimental }) => experimental?.SUBCHANNEL_ARGS_EXCLUDE_KEY_PREFIX !== undefined,
  });
  const loader = await loadedPeer<ProtoLoaderModule>(import("@grpc/proto-loader"), "@grpc/proto-loader", {
    neededFor,
    range: "^0.7.10 || ^0.8.0",
  });
  const definition = loader.fromJSON(serviceDefinition(), { enums: String, longs: Number });
  return { grpc, methods: definition["apache.rocketmq.v2.MessagingService"] as GrpcRuntime["methods"] };
}
