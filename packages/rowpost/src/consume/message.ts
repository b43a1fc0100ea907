import type { ReceivedMessage } from "../inbox/identity.ts";
import { InvalidMessageError } from "../runtime/errors.ts";

/** A message for a handler, the same for all brokers. */
export interface DeliveredMessage extends ReceivedMessage {
  /** The published bytes. */
  readonly body: Buffer;
  /** Media type of the body. */
  readonly contentType: string;
  /** The published headers and those that begin with `rowpost-`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Ordering key; for a RocketMQ topic only if it is FIFO. */
  readonly orderingKey: string | undefined;
  /** The body as text. */
  text(): string;
  /** The body as JSON. Throws `InvalidMessageError` if it is invalid. */
  json<Value = unknown>(): Value;
}

const JSON_TYPE = "application/json";

export interface MessageParts {
  readonly identity: ReceivedMessage;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null | undefined;
  readonly contentType?: string | undefined;
  readonly orderingKey?: string | undefined;
}

export function deliveredMessage({ identity, headers, orderingKey, ...parts }: MessageParts): DeliveredMessage {
  const body = bytesOf(parts.body);
  return {
    ...identity,
    body,
    contentType: parts.contentType || headers["content-type"] || JSON_TYPE,
    headers,
    orderingKey,
    text: () => body.toString("utf8"),
    json<Value>(): Value {
      try {
        return JSON.parse(body.toString("utf8")) as Value;
      } catch (error) {
        const what = `the body of ${identity.type}:${identity.key} is no JSON (${body.length} bytes)`;
        throw new InvalidMessageError(what, { cause: error });
      }
    },
  };
}

function bytesOf(body: MessageParts["body"]): Buffer {
  if (body === null || body === undefined) return Buffer.alloc(0);
  if (typeof body === "string") return Buffer.from(body);
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}
