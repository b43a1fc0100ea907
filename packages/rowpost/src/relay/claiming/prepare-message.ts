/** Turns a scanned row into the broker's message. */
import type { OutgoingMessage } from "../../brokers/broker.ts";
import { decodeBody, decodeHeaders } from "../../message/decode.ts";
import { HEADER_ATTEMPT, HEADER_ID, HEADER_KEY, HEADER_TYPE } from "../../message/message.ts";
import type { ScannedMessage } from "../store.ts";

/** The message, or the reason why it can never be sent. */
export type Prepared = { readonly outgoing: OutgoingMessage } | { readonly broken: string };

export interface PrepareOptions {
  readonly hasContentType: boolean;
  /** Bodies are stored as bytes. */
  readonly isBinary?: boolean | undefined;
  /** The layout has delivery_count. Otherwise attempts are counted by failures alone. */
  readonly countsClaims: boolean;
}

export function prepareMessage(
  row: ScannedMessage & { readonly body: string },
  { countsClaims, hasContentType, isBinary }: PrepareOptions,
): Prepared {
  if (row.type === "" || row.key === "") return { broken: "BROKEN_ROW: message type or message key is empty or NULL" };
  if (row.topic === "") return { broken: "BROKEN_ROW: topic is empty or NULL" };
  if (row.isBodyNull) return { broken: "BROKEN_ROW: message body is NULL" };
  if (row.orderingKey === "") return { broken: "BROKEN_ROW: ordering key is an empty text; leave it NULL" };
  const body = decodeBody({ ...row, body: row.body ?? "" }, { hasContentType, isBinary });
  if (body.broken !== undefined) return { broken: `BROKEN_BODY: ${body.broken}` };
  const headers = decodeHeaders(row.headers);
  if (headers.broken !== undefined) return { broken: `BROKEN_HEADERS: ${headers.broken}` };
  const attempt = (countsClaims ? row.deliveryCount : row.retryCount) + 1;
  return {
    outgoing: {
      id: row.id,
      type: row.type,
      key: row.key,
      topic: row.topic,
      body: body.body,
      contentType: body.contentType,
      headers: {
        ...headers.headers,
        [HEADER_ID]: `${row.type}:${row.key}`,
        [HEADER_TYPE]: row.type,
        [HEADER_KEY]: row.key,
        [HEADER_ATTEMPT]: String(attempt),
      },
      orderingKey: row.orderingKey ?? undefined,
      attempt,
      ...(row.resend ? { resend: true } : {}),
    },
  };
}
