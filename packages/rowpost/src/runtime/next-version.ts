/** After the largest 64-bit number the result matches no row; the database refuses that change. */
export function nextVersion(version: string): string {
  if (version.length < 16) return String(Number(version) + 1);
  return String(BigInt.asIntN(64, BigInt(version) + 1n));
}
