import { ConfigurationError } from "./errors.ts";

/**
 * A part of a URL without its percent signs. `what` names it for the error; the text is not in
 * there, as it may be a secret.
 */
export function percentDecoded(what: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new ConfigurationError(`${what} is not percent-encoded properly (a % itself is written %25)`, { cause });
  }
}
