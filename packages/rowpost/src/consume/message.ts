/** A message as a handler gets it, whichever broker brought it. */
import type { ReceivedMessage } from "../inbox/identity.ts";
import { InvalidMessageError } from "../runtime/errors.ts";

/** A message of a broker, for a handler. */
export interface DeliveredMessage extends ReceivedMessage {
  /** Byte for byte as it was published. */
  readonly body: Buffer;
  /** Media type of the body. */
  readonly contentType: string;
  /** Those that it was published with, and the ones that begin with `rowpost-`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Its ordering key; of a RocketMQ topic only where that is FIFO. */
  readonly orderingKey: string | undefined;
  /** The body as text. */
  text(): string;
  /** The body as JSON. Throws `InvalidMessageError` where it is none. */
  json<Value = unknown>(): Value;
}

const JSON_TYPE = "application/json";

/** What a broker's file has read. */
export interface MessageParts {
  readonly identity: ReceivedMessage;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null | undefined;
  /** Default: the header `content-type`, else JSON. */
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
