/**
 * `content_type` describes `message_body`:
 *
 * | content_type | message_body | goes out as |
 * | --- | --- | --- |
 * | NULL, `application/json`, `…+json` | JSON text | the same text |
 * | any other | text as it is | the same text |
 * | ends in `;base64` | base64 (RFC 4648 section 4, with padding) | bytes, under the type before the mark |
 */

/** Media type of a body without a content type. */
export const JSON_CONTENT_TYPE = "application/json";
/** Media type of a Uint8Array without a content type. */
export const BINARY_CONTENT_TYPE = "application/octet-stream";
/** Reserved suffix of `content_type` that marks a base64 body. */
export const BASE64_MARK = ";base64";

/** True for `application/json`, `text/json` and `…+json`, with or without parameters. */
export function isJsonContentType(contentType: string): boolean {
  return contentType === JSON_CONTENT_TYPE || /^[^;]*(?:\/json|\+json)\s*(?:;|$)/i.test(contentType);
}

/** Body and content type as stored. */
export interface EncodedBody {
  /** JSON, text, or base64. */
  readonly body: string;
  /** Null = the column's default, application/json. A binary body ends in `;base64`. */
  readonly contentType: string | null;
}

/** Type of a body column. */
export type BodyType = "text" | "json" | "binary";
