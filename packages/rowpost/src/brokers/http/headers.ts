/**
 * Message headers as HTTP headers: names of token characters, values of visible ASCII. Whatever
 * else there is goes percent-encoded, and `rowpost-encoded` lists which ones.
 */

import { percentDecode, percentEncode } from "../publishing/percent-encoding.ts";

/** Lists, parted by commas, the headers whose name and value are percent-encoded. */
export const HEADER_ENCODED = "rowpost-encoded";

/**
 * Names that belong to the transport, and `__proto__`, which Node's `request.headers` cannot hold.
 * They go out with their first letter encoded.
 */
const TAKEN_NAMES: ReadonlySet<string> = new Set([
  "__proto__",
  "authorization",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "webhook-id",
  "webhook-signature",
  "webhook-timestamp",
  HEADER_ENCODED,
]);

const PLAIN_NAME = /^[A-Za-z0-9!#$&'*+.^_`|~-]+$/;
/** Visible ASCII with blanks inside. HTTP cuts blanks off at the ends. */
const PLAIN_VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/;

/**
 * Two names of the message's headers that HTTP, which knows no case in them, cannot tell apart and
 * whose values differ; undefined: there are none.
 */
export function sameNames(headers: Readonly<Record<string, string>>): readonly [string, string] | undefined {
  const seen = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    const other = seen.get(name.toLowerCase());
    if (other !== undefined && headers[other] !== value) return [other, name];
    seen.set(name.toLowerCase(), name);
  }
  return undefined;
}

/**
 * Message headers as they go on the wire. `fixedNames`: lower-case names that the endpoint's own
 * headers take, such as `x-api-key`.
 */
export function encodeHeaders(
  headers: Readonly<Record<string, string>>,
  fixedNames: ReadonlySet<string>,
): Record<string, string> {
  const wire = new Map<string, string>();
  const encoded: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    const lowerName = name.toLowerCase();
    const isPlainName = PLAIN_NAME.test(name) && !TAKEN_NAMES.has(lowerName) && !fixedNames.has(lowerName);
    if (isPlainName && PLAIN_VALUE.test(value)) {
      wire.set(lowerName, value);
    } else {
      const wireName = isPlainName ? lowerName : encodeName(lowerName);
      if (!wire.has(wireName)) encoded.push(wireName);
      wire.set(wireName, percentEncode(value, /[^\x20-\x7e]|%|^ | $/gu));
    }
  }
  if (encoded.length > 0) wire.set(HEADER_ENCODED, encoded.join(","));
  return Object.fromEntries(wire);
}

/** The first letter always, to be another name than the transport's. */
function encodeName(name: string): string {
  const [first = "", ...rest] = name;
  return `${percentEncode(first, /./gsu)}${percentEncode(rest.join(""), /[^A-Za-z0-9!#$&'*+.^_`|~-]/gu)}`.toLowerCase();
}

/**
 * The message's headers from those of a request, as `request.headers` of node:http has them: for
 * receivers written in JavaScript. Names are in lower case. Headers of the transport (host,
 * content-length, webhook-id, …) are left in. What is not well encoded stays as it came.
 */
export function decodeWebhookHeaders(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string> {
  const list = headers[HEADER_ENCODED];
  const encoded = new Set(typeof list === "string" ? list.split(",").map((name) => name.trim()) : []);
  const decoded = new Map<string, string>();
  // Plain ones first: of two with a name the message's own, which is encoded, is asked for.
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && name !== HEADER_ENCODED && !encoded.has(name))
      decoded.set(name, [value].flat().join(", "));
  }
  for (const name of encoded) {
    const value = headers[name];
    if (typeof value === "string") decoded.set(percentDecode(name), percentDecode(value));
  }
  return Object.fromEntries(decoded);
}
