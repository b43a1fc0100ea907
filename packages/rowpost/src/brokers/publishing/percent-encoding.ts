/** For what a broker's fields cannot carry: `%XX` for each byte of a character's UTF-8. */

/** Encodes what the pattern (with the flags `gu`) matches. Half a surrogate pair becomes U+FFFD. */
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
