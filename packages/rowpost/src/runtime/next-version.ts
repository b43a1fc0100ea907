/**
 * The version that a change leaves behind. Above the largest of 64 bits none follows, because the
 * database refuses the change: the number that comes back fits into a statement and matches no row.
 */
export function nextVersion(version: string): string {
  if (version.length < 16) return String(Number(version) + 1);
  return String(BigInt.asIntN(64, BigInt(version) + 1n));
}
