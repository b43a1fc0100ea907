/**
 * A body in a column of bytes: they stand there as they go out, and `content_type` carries no mark.
 * Everywhere else a body is text beside a content type (content-type.ts), and here one becomes the
 * other.
 */
import { BASE64_MARK, BINARY_CONTENT_TYPE, type EncodedBody, isJsonContentType } from "./content-type.ts";

/** The bytes that a body is. */
export function bytesOf({ body, contentType }: EncodedBody): Buffer {
  return Buffer.from(body, contentType?.endsWith(BASE64_MARK) === true ? "base64" : "utf8");
}

/** The content type beside them. */
export function bareType({ contentType }: EncodedBody): string | null {
  return contentType?.endsWith(BASE64_MARK) === true ? contentType.slice(0, -BASE64_MARK.length) : contentType;
}

/**
 * The body that these bytes are. Without a content type they are JSON where they parse as it. What
 * is no text comes out as the bytes that it is, whatever its content type says.
 */
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

/** Undefined: it is not UTF-8, and would not be the same bytes again. */
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
