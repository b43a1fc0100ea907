/** Defaults of a message's copy, and the display of its changes. */

/** `…~2` after a key, and `…~3` after that. */
export function nextKey(key: string): string {
  const [, base = key, number] = /^(.*)~(\d{1,6})$/s.exec(key) ?? [];
  return `${base}~${number === undefined ? 2 : Number(number) + 1}`;
}

/**
 * Headers as lines, without those that rowpost sets; undefined: the table has no column for them.
 * Invalid JSON is shown unchanged for repair.
 */
export function headerLines(stored: string | null | undefined): string | undefined {
  if (stored === undefined) return undefined;
  const headers = parsed(stored ?? "{}");
  if (headers === undefined) return stored ?? "";
  return Object.entries(headers)
    .filter(([name]) => !/^rowpost-/i.test(name))
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join("\n");
}

/** The lines as an object. A line without a colon is a name without a value. */
export function headersOf(lines: string): Record<string, string> {
  const pairs = lines
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line): [string, string] => {
      const at = line.includes(":") ? line.indexOf(":") : line.length;
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    });
  return Object.fromEntries(pairs);
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The part of a text that differs, with the common text around it. */
export interface Stretch {
  readonly front: string;
  readonly removed: string;
  readonly added: string;
  readonly behind: string;
}

const AROUND = 40;

/** Undefined: both are equal. */
export function stretchOf(before: string, after: string): Stretch | undefined {
  if (before === after) return undefined;
  const [old, fresh] = [Array.from(before), Array.from(after)];
  const shorter = Math.min(old.length, fresh.length);
  let front = 0;
  while (front < shorter && old[front] === fresh[front]) front += 1;
  let behind = 0;
  while (behind < shorter - front && old.at(-1 - behind) === fresh.at(-1 - behind)) behind += 1;
  const end = old.length - behind;
  return {
    front: `${front > AROUND ? "…" : ""}${old.slice(Math.max(0, front - AROUND), front).join("")}`,
    removed: old.slice(front, end).join(""),
    added: fresh.slice(front, fresh.length - behind).join(""),
    behind: `${old.slice(end, end + AROUND).join("")}${behind > AROUND ? "…" : ""}`,
  };
}
