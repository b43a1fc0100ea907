import { ConfigurationError } from "./errors.ts";

/** `what` names the part in the error, which omits the text, as it may be a secret. */
export function percentDecoded(what: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new ConfigurationError(`${what} is not percent-encoded properly (a % itself is written %25)`, { cause });
  }
}
