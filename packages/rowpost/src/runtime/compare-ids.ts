/** Ids are BIGINTs as decimal strings, never JS numbers, which round above 2^53. */

/** For non-negative decimal strings without leading zeros. */
export function compareIds(left: string, right: string): number {
  if (left.length !== right.length) return left.length - right.length;
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** For sorting rows by their ids. */
export function byRowId(left: { readonly id: string }, right: { readonly id: string }): number {
  return compareIds(left.id, right.id);
}

/** Every lock of several rows uses this order, so that two processes cannot deadlock. */
export function inIdOrder<Row extends { readonly id: string }>(rows: readonly Row[]): Row[] {
  return [...rows].sort(byRowId);
}
