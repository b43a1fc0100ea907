import { InvalidArgumentError } from "commander";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses `500ms`, `10s`, `1h30m`, `7d` or `0` to milliseconds. A bare number is refused. */
export function duration(text: string): number {
  const trimmed = text.trim().toLowerCase();
  if (trimmed === "0") return 0;
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(trimmed)) {
    throw new InvalidArgumentError("It must be a duration such as 500ms, 10s, 5m, 6h or 7d.");
  }
  let totalMs = 0;
  for (const [, amount, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    totalMs += Number(amount) * (UNIT_MS[unit ?? ""] ?? 0);
  }
  if (totalMs > Number.MAX_SAFE_INTEGER) throw new InvalidArgumentError("It is longer than any calendar.");
  return Math.round(totalMs);
}
