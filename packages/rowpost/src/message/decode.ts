/**
 * Decodes a row into body, content type and headers. Any program may insert rows, so nothing is
 * trusted: an invalid row is reported with a reason, and the relay makes it `failed`.
 */
import { bodyOf } from "./binary-body.ts";
import { BASE64_MARK, BINARY_CONTENT_TYPE, isJsonContentType, JSON_CONTENT_TYPE } from "./content-type.ts";

/** Media type of a non-JSON body in a table without the column. */
const TEXT_CONTENT_TYPE = "text/plain";

/** Why a row cannot be published; becomes its `fail_reason`. */
export interface BrokenMessage {
  readonly broken: string;
}

export interface DecodedBody {
  readonly broken?: undefined;
  readonly body: string | Uint8Array;
  readonly contentType: string;
  /** The body, or its parsed value if it is JSON. */
  readonly value: unknown;
}

export interface DecodedHeaders {
  readonly broken?: undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Never throws.
 *
 * Without content_type (`hasContentType` false) a body that parses is JSON, any other is text. From
 * a column of bytes (`isBinary`) it comes as base64. Costs as much as `JSON.parse` (0.3 us for 400
 * bytes in one field, 2 us in 27 fields), the only way to recognize JSON.
 */
export function decodeBody(
  row: { readonly body: string; readonly contentType: string | null },
  options: { readonly hasContentType: boolean; readonly isBinary?: boolean | undefined },
): DecodedBody | BrokenMessage {
  if (options.isBinary === true)
    return decodeBody(bodyOf(Buffer.from(row.body, "base64"), row.contentType), { hasContentType: true });
  const { body } = row;
  if (!options.hasContentType) {
    const json = parsed(body);
    return json === undefined
      ? { body, contentType: TEXT_CONTENT_TYPE, value: body }
      : { body, contentType: JSON_CONTENT_TYPE, value: json.value };
  }
  const contentType = row.contentType === null || row.contentType === "" ? JSON_CONTENT_TYPE : row.contentType;
  if (contentType.endsWith(BASE64_MARK)) {
    const bytes = Buffer.from(body, "base64");
    // Buffer skips invalid base64; encoding again shows whether anything was lost.
    if (bytes.toString("base64") !== body) return { broken: `the body is marked ${BASE64_MARK} but is not base64` };
    const bare = contentType.slice(0, -BASE64_MARK.length);
    return { body: bytes, contentType: bare === "" ? BINARY_CONTENT_TYPE : bare, value: bytes };
  }
  if (!isJsonContentType(contentType)) return { body, contentType, value: body };
  const json = parsed(body);
  if (json === undefined) return { broken: `the content type is ${contentType} but the body is not JSON` };
  return { body, contentType, value: json.value };
}

/** Undefined: not JSON. */
function parsed(text: string): { readonly value: unknown } | undefined {
  // An exception costs 10 times a parse; the first character mostly avoids it.
  if (!/^\s*["{[\dtfn-]/.test(text)) return undefined;
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

const NO_HEADERS: DecodedHeaders = { headers: Object.freeze({}) };

/** A JSON object of strings; NULL and an empty text mean none. Never throws. */
export function decodeHeaders(text: string | null): DecodedHeaders | BrokenMessage {
  if (text === null || text === "" || text === "{}") return NO_HEADERS;
  let headers: unknown;
  try {
    headers = JSON.parse(text);
  } catch {
    return { broken: "the headers are not JSON" };
  }
  if (!isStringMap(headers)) return { broken: "the headers are not a JSON object of strings" };
  return { headers };
}

function isStringMap(value: unknown): value is Record<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  for (const name in value) {
    if (typeof (value as Record<string, unknown>)[name] !== "string") return false;
  }
  return true;
}
