import type { Language } from "../language.ts";

const UNITS = { en: ["s", "min", "h", "d"], zh: ["秒", "分钟", "小时", "天"] } as const;

export function durationText(ms: number, language: Language): string {
  const sizes = [1_000, 60_000, 3_600_000, 86_400_000] as const;
  const index = ms < 120_000 ? 0 : ms < 7_200_000 ? 1 : ms < 172_800_000 ? 2 : 3;
  return `${Math.round(ms / sizes[index])} ${UNITS[language][index]}`;
}

export function quoted(text: string): string {
  return /^[\w.,:@%+/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
