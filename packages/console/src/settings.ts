/** The user's language, theme, zone and keys, stored in this browser. */
import { effect, type Signal, signal } from "@preact/signals";

const LANGUAGES = ["en", "zh"] as const;

export const THEMES = ["system", "light", "dark"] as const;

const PREFIX = "rowpost.";

function stored(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    // Storage may be forbidden; then nothing is stored.
    return null;
  }
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // As above.
  }
}

/** From the address, else this browser, else `otherwise`. */
function setting<Value extends string>(
  name: string,
  isValue: (text: string) => text is Value,
  otherwise: Value,
): Signal<Value> {
  const given = [new URLSearchParams(location.search).get(name), stored(name)];
  const made = signal(given.find((text): text is Value => text !== null && isValue(text)) ?? otherwise);
  let isFirst = true;
  effect(() => {
    const { value } = made;
    if (!isFirst) keep(name, value);
    isFirst = false;
  });
  return made;
}

function isOneOf<Value extends string>(values: readonly Value[]): (text: string) => text is Value {
  return (text): text is Value => values.some((value) => value === text);
}

/** Zones that this browser knows; `local` is its own. */
function isZone(text: string): text is string {
  try {
    if (text !== "local") new Intl.DateTimeFormat("en", { timeZone: text }).format();
    return true;
  } catch {
    return false;
  }
}

export const language = setting("lang", isOneOf(LANGUAGES), /^zh\b/i.test(navigator.language) ? "zh" : "en");
export const theme = setting("theme", isOneOf(THEMES), "system");
export const zone = setting("zone", isZone, "local");
export const keys = setting("keys", isOneOf(["on", "off"] as const), "on");

export function applySettings(): void {
  effect(() => {
    document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en";
  });
  effect(() => {
    if (theme.value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
  });
}
