/** The mean of the two middle values for an even count. `undefined` without values. */
export function median(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle];
  const lower = sorted.length % 2 === 0 ? sorted[middle - 1] : upper;
  return upper === undefined || lower === undefined ? undefined : (lower + upper) / 2;
}

/** Median of the known values; `null` without any, as results carry it. */
export function medianOrNull(values: readonly (number | null | undefined)[]): number | null {
  return median(values.filter((value): value is number => value !== null && value !== undefined)) ?? null;
}

/**
 * Nearest-rank percentile: the smallest value that at least `percent` of all values do not exceed.
 */
export function percentile(values: readonly number[], percent: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)];
}

/** Rounded to this many decimals. */
export function rounded(value: number | null | undefined, digits: number): number | null {
  return value === null || value === undefined || !Number.isFinite(value) ? null : Number(value.toFixed(digits));
}
