/** Parsers of option values. Each error is one line that says what is valid. */
import { InvalidArgumentError } from "commander";
import { MESSAGE_STATES, type MessageState, STATE_WORDS_ZH } from "rowpost/admin";

import { duration } from "../duration.ts";

export { InputError } from "../failure.ts";
export { duration };

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d{1,15}$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

export function numberFrom(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+(?:\.\d+)?$/.test(text) && value >= least) return value;
    throw new InvalidArgumentError(`It must be a number of at least ${least}.`);
  };
}

/**
 * An instant as ISO 8601 UTC text: `2026-11-21T08:00:00Z`, `2026-11-21T16:00+08:00`, a day
 * (`2026-11-21`, its beginning in UTC), or a duration before now such as `2h`. A time of day
 * without a zone is ambiguous and refused.
 */
export function instant(text: string, now: () => number = Date.now): string {
  const trimmed = text.trim();
  if (/^\d+(?:\.\d+)?(?:ms|s|m|h|d)/i.test(trimmed)) return new Date(now() - duration(trimmed)).toISOString();
  const shape = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:?\d{2}))?$/i;
  const time = shape.test(trimmed) ? Date.parse(trimmed.replace(" ", "T")) : Number.NaN;
  if (Number.isNaN(time)) {
    throw new InvalidArgumentError(
      "It must be an instant with a zone (2026-11-21T08:00:00Z), a day (2026-11-21), or how long ago (2h).",
    );
  }
  return new Date(time).toISOString();
}

/** For options that may be repeated or have commas: `--id 1,2 --id 3`. */
export function listOf<Item>(parse: (text: string) => Item): (text: string, before?: readonly Item[]) => Item[] {
  return (text, before = []) => {
    const items = text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "");
    if (items.length === 0) throw new InvalidArgumentError("It is empty.");
    return [...before, ...items.map(parse)];
  };
}

export function messageId(text: string): string {
  if (/^\d{1,19}$/.test(text)) return text.replace(/^0+(?=\d)/, "");
  throw new InvalidArgumentError(`"${text}" is not an id: ids are the numbers in the column id.`);
}

export function messageState(text: string): MessageState {
  const found = MESSAGE_STATES.find((state) => state === text.toLowerCase() || STATE_WORDS_ZH[state] === text);
  if (found !== undefined) return found;
  throw new InvalidArgumentError(`"${text}" is not a state: ${MESSAGE_STATES.join(", ")}.`);
}

/**
 * Values of a layout's state column, from `pending=待发送,sending=发送中`. Whole numbers count as
 * numbers.
 */
export function stateMapping(text: string): Partial<Record<MessageState, string | number>> {
  const mapping: Partial<Record<MessageState, string | number>> = {};
  for (const pair of text.split(",")) {
    const [name = "", value = "", ...rest] = pair.split("=").map((part) => part.trim());
    if (value === "" || rest.length > 0) {
      throw new InvalidArgumentError(`"${pair}" is not STATE=VALUE, as in pending=待发送,sending=发送中.`);
    }
    mapping[messageState(name)] = /^\d{1,9}$/.test(value) ? Number(value) : value;
  }
  return mapping;
}

export function headerOption(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be NAME=VALUE.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}
