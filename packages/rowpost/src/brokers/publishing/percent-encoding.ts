/** Writes `%XX` for each UTF-8 byte of characters that a broker's fields cannot carry. */

/** Encodes the matches of the pattern (flags `gu`). A lone surrogate becomes U+FFFD. */
export function percentEncode(text: string, unsafe: RegExp): string {
  return text.replace(unsafe, (characters) => {
    let encoded = "";
    for (const byte of Buffer.from(characters)) encoded += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    return encoded;
  });
}

/** Undoes {@link percentEncode}; text that is no percent-encoding stays as it is. */
export function percentDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
