import { ConfigurationError } from "../../runtime/errors.ts";

/**
 * Of a list, or a text with commas (or `separator`). Throws {@link ConfigurationError} with
 * `account` when one holds a user or password, and with `empty` when there is none.
 */
export function addressList(
  given: string | readonly string[],
  words: { readonly account: string; readonly empty: string; readonly separator?: RegExp },
): string[] {
  const texts = [given].flat();
  // Checked before splitting: a secret may hold a comma, and no error may repeat a part of it.
  if (texts.some((text) => text.includes("@"))) throw new ConfigurationError(words.account);
  const used = texts.flatMap((text) => text.split(words.separator ?? ",")).map((text) => text.trim());
  const addresses = used.filter((text) => text !== "");
  if (addresses.length === 0) throw new ConfigurationError(words.empty);
  return addresses;
}
