import { createHmac } from "node:crypto";
import type { AccessKeys } from "./access-keys.ts";
import type { GrpcMetadata, GrpcRuntime } from "./grpc.ts";

export interface CallMetadataOptions {
  readonly grpc: GrpcRuntime["grpc"];
  readonly clientId: string;
  readonly namespace: string;
  readonly keys: AccessKeys | undefined;
}

export const CLIENT_VERSION = "5.0.0";

/**
 * Returns the metadata of the next call. The signature covers only the time in seconds, so one set
 * serves all calls of a second (grpc-js copies it for each). The optional request id is left out,
 * because a header that changes with each call cannot be compressed.
 */
export function createCallMetadata(options: CallMetadataOptions): () => GrpcMetadata {
  let second = -1;
  let metadata: GrpcMetadata | undefined;
  return () => {
    const nowMs = Date.now();
    const now = Math.floor(nowMs / 1000);
    if (metadata === undefined || now !== second) {
      second = now;
      metadata = build(options, dateTime(nowMs));
    }
    return metadata;
  };
}

function build(options: CallMetadataOptions, date: string): GrpcMetadata {
  const metadata = new options.grpc.Metadata();
  metadata.set("x-mq-protocol", "v2");
  metadata.set("x-mq-client-id", options.clientId);
  metadata.set("x-mq-language", "NODE_JS");
  metadata.set("x-mq-client-version", CLIENT_VERSION);
  metadata.set("x-mq-date-time", date);
  if (options.namespace !== "") metadata.set("x-mq-namespace", options.namespace);
  if (options.keys !== undefined) {
    metadata.set("authorization", authorization(options.keys, date));
    if (options.keys.sessionToken !== undefined) metadata.set("x-mq-session-token", options.keys.sessionToken);
  }
  return metadata;
}

/** `20261121T093000Z`. */
function dateTime(atMs: number): string {
  return new Date(atMs).toISOString().replace(/[-:]|\.\d+/g, "");
}

function authorization(keys: AccessKeys, date: string): string {
  const signature = createHmac("sha1", keys.secretKey).update(date).digest("hex").toUpperCase();
  return `MQv2-HMAC-SHA1 Credential=${keys.accessKey}, SignedHeaders=x-mq-date-time, Signature=${signature}`;
}
