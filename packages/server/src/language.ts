export type Language = "en" | "zh";

export type Say = (en: string, zh: string) => string;

export function sayIn(language: Language): Say {
  return language === "en" ? (en) => en : (_, zh) => zh;
}

/** `ROWPOST_LANG=zh`, or the terminal's locale; `ROWPOST_LANG=en` wins over a Chinese one. */
export function isChinese(environment: Readonly<Record<string, string | undefined>>): boolean {
  const names = ["ROWPOST_LANG", "LC_ALL", "LC_MESSAGES", "LANG"];
  const chosen = names.map((name) => environment[name]).find((value) => value !== undefined && value !== "");
  return chosen !== undefined && /^zh\b|^zh_/i.test(chosen);
}
