import { inAscii } from "../../runtime/ascii.ts";
import type { Outcome } from "../store.ts";

/** Shorter texts carry no meaning. */
const SHORTEST = 8;

/**
 * The same outcome with simpler texts: first in ASCII, other characters as \uXXXX; then half as
 * long each time, since a column may be shorter than the layout says; finally none. Undefined:
 * nothing left to remove.
 */
export function inPlainerWords(outcome: Outcome): Outcome | undefined {
  const messageId = plainer(outcome.messageId);
  const failReason = plainer(outcome.failReason);
  if (messageId === outcome.messageId && failReason === outcome.failReason) return undefined;
  return { ...outcome, messageId, failReason };
}

function plainer(text: string | null): string | null {
  if (text === null) return null;
  const ascii = inAscii(text);
  if (ascii !== text) return ascii;
  return text.length <= SHORTEST ? null : text.slice(0, text.length >> 1);
}
