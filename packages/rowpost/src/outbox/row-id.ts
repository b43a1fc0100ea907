/** Ids are BIGINTs as decimal texts: never a JS number, so that none is rounded above 2^53. */

/** Numeric order of two non-negative decimal texts without leading zeros. */
export function compareIds(left: string, right: string): number {
  if (left.length !== right.length) return left.length - right.length;
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
