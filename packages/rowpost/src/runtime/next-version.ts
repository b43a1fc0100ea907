/**
 * The version after a change. The largest 64-bit number has no successor, because the database
 * refuses the change: the returned number fits into a statement and matches no row.
 */
export function nextVersion(version: string): string {
  if (version.length < 16) return String(Number(version) + 1);
  return String(BigInt.asIntN(64, BigInt(version) + 1n));
}
