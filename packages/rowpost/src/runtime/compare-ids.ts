/** Ids are BIGINTs as decimal texts: never a JS number, so that none is rounded above 2^53. */

/** Numeric order of two non-negative decimal texts without leading zeros. */
export function compareIds(left: string, right: string): number {
  if (left.length !== right.length) return left.length - right.length;
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** For sorting rows by their ids. */
export function byRowId(left: { readonly id: string }, right: { readonly id: string }): number {
  return compareIds(left.id, right.id);
}

/**
 * Rows in the order of their ids: whoever locks several rows locks them in this order, so that two
 * of us cannot wait for each other.
 */
export function inIdOrder<Row extends { readonly id: string }>(rows: readonly Row[]): Row[] {
  return [...rows].sort(byRowId);
}
