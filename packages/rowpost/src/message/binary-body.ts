/**
 * Converts between bodies in a column of bytes, stored as sent and with no mark in `content_type`,
 * and bodies as text beside a content type (content-type.ts).
 */
import { BASE64_MARK, BINARY_CONTENT_TYPE, type EncodedBody, isJsonContentType } from "./content-type.ts";

export function bytesOf({ body, contentType }: EncodedBody): Buffer {
  return Buffer.from(body, contentType?.endsWith(BASE64_MARK) === true ? "base64" : "utf8");
}

/** The content type beside them. */
export function bareType({ contentType }: EncodedBody): string | null {
  return contentType?.endsWith(BASE64_MARK) === true ? contentType.slice(0, -BASE64_MARK.length) : contentType;
}

/** Without a content type, bytes are JSON if they parse as it. Invalid text stays binary. */
export function bodyOf(bytes: Buffer, contentType: string | null): EncodedBody {
  const isTold = contentType !== null && contentType !== "";
  const text = !isTold || isText(contentType) ? decoded(bytes) : undefined;
  if (text !== undefined && (isTold || isJson(text))) return { body: text, contentType };
  const type = isTold ? contentType : BINARY_CONTENT_TYPE;
  return { body: bytes.toString("base64"), contentType: `${type}${BASE64_MARK}` };
}

function isText(contentType: string): boolean {
  return isJsonContentType(contentType) || contentType.endsWith(BASE64_MARK) || /^text\/|[/+]xml\b/i.test(contentType);
}

/** Undefined: not UTF-8, so not reversible. */
function decoded(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
