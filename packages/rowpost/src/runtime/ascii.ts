/**
 * Writes non-ASCII characters as \uXXXX, for character sets that lack them. A JSON text stays the
 * same JSON.
 */
export function inAscii(text: string): string {
  return text.replace(
    /[\u0080-\uFFFF]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
}

/** Reverts {@link inAscii}. */
export function fromAscii(text: string): string {
  return text.replace(/\\u([\dA-F]{4})/g, (_escape, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
