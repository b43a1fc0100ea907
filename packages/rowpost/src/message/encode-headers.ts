import { invalid, textFault } from "./check-text.ts";
import type { NewMessage } from "./message.ts";

/** In bytes as JSON: RocketMQ's limit of properties, and half of MySQL's TEXT. */
const HEADERS_BYTES = 32_767;

/**
 * NULL when empty. `added` are rowpost's own headers (trace context); the message's win. Throws
 * `InvalidMessageError`.
 */
export function encodeHeaders(
  name: string,
  headers: NewMessage["headers"],
  added?: Readonly<Record<string, string>>,
): string | null {
  if (headers === undefined && added === undefined) return null;
  if (headers !== undefined) checkHeaders(name, headers);
  const text = JSON.stringify(added === undefined ? headers : { ...added, ...headers });
  if (text === "{}") return null;
  if (text.length * 3 > HEADERS_BYTES && Buffer.byteLength(text) > HEADERS_BYTES) {
    throw invalid(name, `the headers have ${Buffer.byteLength(text)} bytes as JSON; at most ${HEADERS_BYTES} fit`);
  }
  return text;
}

/**
 * HTTP names, and values without control characters, which every broker can carry; no line break
 * can inject a header.
 */
function checkHeaders(name: string, headers: unknown): void {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    throw invalid(name, "headers must be an object of strings");
  }
  for (const [header, value] of Object.entries(headers)) {
    if (!/^[\w!#$%&'*+.^`|~-]{1,128}$/.test(header)) {
      throw invalid(name, `"${header}" is no header name: 1 to 128 letters, digits or any of !#$%&'*+.^_\`|~-`);
    }
    if (/^rowpost-/i.test(header))
      throw invalid(name, `header names that begin with rowpost- are reserved: "${header}"`);
    if (typeof value !== "string") throw invalid(name, `header ${header} must be a string, not ${typeof value}`);
    if (hasControlCharacter(value)) throw invalid(name, `header ${header} has a control character`);
    const fault = textFault(value);
    if (fault !== undefined) throw invalid(name, `header ${header} ${fault}`);
  }
}

function hasControlCharacter(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return true;
  }
  return false;
}
