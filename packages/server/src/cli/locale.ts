/** The language that the environment asks for. */

/** `ROWPOST_LANG=zh`, or the locale of the terminal; `ROWPOST_LANG=en` wins over a Chinese one. */
export function isChinese(environment: Readonly<Record<string, string | undefined>>): boolean {
  const names = ["ROWPOST_LANG", "LC_ALL", "LC_MESSAGES", "LANG"];
  const chosen = names.map((name) => environment[name]).find((value) => value !== undefined && value !== "");
  return chosen !== undefined && /^zh\b|^zh_/i.test(chosen);
}
