/**
 * What a relay does to a row before it publishes it: its columns become a body, a content type and
 * headers. Any program may insert rows, so reading trusts nothing: what does not fit is reported as
 * broken with a reason, and the relay makes that one row `failed`.
 */
import { bodyOf } from "./binary-body.ts";
import { BASE64_MARK, BINARY_CONTENT_TYPE, isJsonContentType, JSON_CONTENT_TYPE } from "./content-type.ts";

/** Media type of a body that is not JSON, in a table without the column. */
const TEXT_CONTENT_TYPE = "text/plain";

/** Why a row cannot be published; becomes its `fail_reason`. */
export interface BrokenMessage {
  readonly broken: string;
}

/** A body on its way out. */
export interface DecodedBody {
  readonly broken?: undefined;
  readonly body: string | Uint8Array;
  readonly contentType: string;
  /** The body, or the value that it is as JSON. */
  readonly value: unknown;
}

/** Headers on their way out. */
export interface DecodedHeaders {
  readonly broken?: undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Body of a row for the broker. Never throws.
 *
 * `hasContentType` is false for a table without the column: what parses is then JSON, anything else
 * is text. Of a column of bytes (`isBinary`) the body comes as base64. Costs what `JSON.parse`
 * costs (0.3 us for 400 bytes in one field, 2 us in 27 fields):
 * parsing is the only way to know that a body is JSON.
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
    // Buffer skips what is not base64; only a body that comes out the same when it is encoded again
    // has lost nothing.
    if (bytes.toString("base64") !== body) return { broken: `the body is marked ${BASE64_MARK} but is not base64` };
    const bare = contentType.slice(0, -BASE64_MARK.length);
    return { body: bytes, contentType: bare === "" ? BINARY_CONTENT_TYPE : bare, value: bytes };
  }
  if (!isJsonContentType(contentType)) return { body, contentType, value: body };
  const json = parsed(body);
  if (json === undefined) return { broken: `the content type is ${contentType} but the body is not JSON` };
  return { body, contentType, value: json.value };
}

/** Undefined: it is not JSON. */
function parsed(text: string): { readonly value: unknown } | undefined {
  // An exception costs 10 times a parse: plain text is mostly told by its first character.
  if (!/^\s*["{[\dtfn-]/.test(text)) return undefined;
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

const NO_HEADERS: DecodedHeaders = { headers: Object.freeze({}) };

/** Headers of a row: a JSON object of strings; NULL and an empty text are none. Never throws. */
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
