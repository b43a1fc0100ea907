/** From a scanned row to what the broker gets; a row that cannot be sent as it is says why. */
import type { OutgoingMessage } from "../../brokers/broker.ts";
import { decodeBody, decodeHeaders } from "../../message/decode.ts";
import { HEADER_ATTEMPT, HEADER_ID, HEADER_KEY, HEADER_TYPE } from "../../message/message.ts";
import type { ScannedMessage } from "../store.ts";

/** The message, or the reason why nobody could ever send it. */
export type Prepared = { readonly outgoing: OutgoingMessage } | { readonly broken: string };

/** What the layout tells of a row. */
export interface PrepareOptions {
  /** It has content_type. */
  readonly hasContentType: boolean;
  /** Its column of bodies holds bytes. */
  readonly isBinary?: boolean | undefined;
  /** It has delivery_count. Else the number of an attempt is known from the failures alone. */
  readonly countsClaims: boolean;
}

/** Decodes body and headers and adds the identity headers. */
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
