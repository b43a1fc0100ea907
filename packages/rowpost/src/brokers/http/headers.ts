/**
 * Message headers as HTTP headers. Names that are not tokens and values beyond visible ASCII are
 * percent-encoded and listed in `rowpost-encoded`.
 */

import { percentDecode, percentEncode } from "../publishing/percent-encoding.ts";

/** Comma-separated list of headers whose name and value are percent-encoded. */
export const HEADER_ENCODED = "rowpost-encoded";

/**
 * Names that belong to the transport, and `__proto__`, which Node's `request.headers` cannot hold.
 * They are sent with the first letter encoded.
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
/** Visible ASCII with inner blanks; HTTP trims the ends. */
const PLAIN_VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/;

/**
 * Two header names that differ only in case, which HTTP ignores, and have different values.
 * Undefined if there are none.
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
 * Message headers in wire form. `fixedNames`: lower-case names of the endpoint's own headers, such
 * as `x-api-key`.
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

/** Always encodes the first letter, so that the name differs from the transport's. */
function encodeName(name: string): string {
  const [first = "", ...rest] = name;
  return `${percentEncode(first, /./gsu)}${percentEncode(rest.join(""), /[^A-Za-z0-9!#$&'*+.^_`|~-]/gu)}`.toLowerCase();
}

/**
 * Restores the message's headers from `request.headers` of node:http, for receivers in JavaScript.
 * Names are in lower case. Transport headers (host, content-length, webhook-id, …) stay in. Badly
 * encoded headers are passed through.
 */
export function decodeWebhookHeaders(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string> {
  const list = headers[HEADER_ENCODED];
  const encoded = new Set(typeof list === "string" ? list.split(",").map((name) => name.trim()) : []);
  const decoded = new Map<string, string>();
  // Plain headers first, so that an encoded one, which is the message's own, wins over a plain one
  // of the same name.
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
