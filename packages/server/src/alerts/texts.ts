/** Text of a notice: problem, since when, how much, first step. English and Chinese. */

import type { Language } from "../language.ts";
import { lineOf as lineIn, titleOf } from "./rule-texts.ts";
import type { Severity } from "./rules.ts";
import type { Notice, NoticeItem } from "./state.ts";
import { durationText } from "./wording.ts";

export interface Rendered {
  readonly title: string;
  readonly text: string;
  readonly severity: Severity;
  readonly isResolved: boolean;
}

/** Above this number the notice is a list with a line each. */
const DIGEST = 10;

const WORDS = {
  en: {
    kinds: { firing: "", worse: "worse: ", still: "still: ", resolved: "over: " },
    severities: { info: "note", warning: "warning", critical: "CRITICAL" },
    since: (since: string, duration: string) => `since ${since} (${duration})`,
    over: (duration: string, peak: string) => `over after ${duration}; at its worst: ${peak}`,
    first: "first step",
    open: "open",
    several: (count: number) => `${count} alerts at once`,
    more: (count: number) => `… ${count} more`,
  },
  zh: {
    kinds: { firing: "", worse: "加重：", still: "仍未恢复：", resolved: "已恢复：" },
    severities: { info: "提示", warning: "警告", critical: "严重" },
    since: (since: string, duration: string) => `开始于 ${since}（已持续 ${duration}）`,
    over: (duration: string, peak: string) => `持续 ${duration} 后恢复；最严重时：${peak}`,
    first: "第一步",
    open: "打开",
    several: (count: number) => `同时 ${count} 条告警`,
    more: (count: number) => `……另有 ${count} 条`,
  },
} as const;

export interface TextOptions {
  readonly language: Language;
  readonly source: string;
  readonly link: string | undefined;
  /** Limit of the text, in UTF-8. */
  readonly mostBytes: number;
  readonly plain: (text: string) => string;
}

export function render({ at, items }: Pick<Notice, "at" | "items">, options: TextOptions): Rendered {
  const words = WORDS[options.language];
  const [first] = items;
  if (first === undefined) throw new Error("a notice without items");
  const isResolved = items.every(({ kind }) => kind === "resolved");
  const isDigest = items.length > DIGEST;
  const lead = items.length === 1 ? headline(first, options) : words.several(items.length);
  const title = `[rowpost ${options.source}] ${lead}`;
  const blocks = items.map((item) => {
    if (isDigest) return `- ${headline(item, options)}`;
    const lines = paragraph(item, options);
    // Every channel shows the title, so the text does not repeat it.
    return (items.length === 1 ? lines.slice(1) : lines).join("\n\n");
  });
  const end = options.link === undefined ? [at] : [at, `${words.open}: ${options.link}`];
  const text = fitted(blocks, {
    between: isDigest ? "\n" : "\n\n",
    end: `\n\n${end.join("\n\n")}`,
    more: words.more,
    mostBytes: options.mostBytes,
  });
  return { title: cutToBytes(title, 200), text, severity: first.severity, isResolved };
}

function headline(item: NoticeItem, { plain, language }: TextOptions): string {
  const words = WORDS[language];
  const severity = item.kind === "resolved" ? "" : `${words.severities[item.severity]} `;
  return `${severity}${words.kinds[item.kind]}${plain(titleOf(item, language))}`;
}

function paragraph(item: NoticeItem, options: TextOptions): string[] {
  const { plain, language } = options;
  const words = WORDS[language];
  const duration = durationText(item.forMs, language);
  const { command, peak, why } = lineIn(item, language);
  if (item.kind === "resolved") return [headline(item, options), words.over(duration, plain(peak))];
  return [headline(item, options), words.since(item.since, duration), plain(why), `${words.first}: ${plain(command)}`];
}

interface Fitting {
  readonly between: string;
  readonly end: string;
  readonly more: (count: number) => string;
  readonly mostBytes: number;
}

function fitted(blocks: readonly string[], { between, end, more, mostBytes }: Fitting): string {
  for (let count = blocks.length; count > 0; count -= 1) {
    const left = blocks.length - count;
    const shown = left === 0 ? blocks : [...blocks.slice(0, count), more(left)];
    const text = shown.join(between) + end;
    if (Buffer.byteLength(text) <= mostBytes) return text;
  }
  return cutToBytes(blocks[0] ?? "", mostBytes);
}

/** Cuts to at most this many bytes of UTF-8, between two characters. */
export function cutToBytes(text: string, mostBytes: number): string {
  const bytes = Buffer.from(text.toWellFormed());
  if (bytes.length <= mostBytes) return text.toWellFormed();
  let end = mostBytes - Buffer.byteLength("…");
  // The later bytes of a character begin with the bits 10.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${bytes.subarray(0, Math.max(0, end)).toString("utf8")}…`;
}
