import { stripVTControlCharacters, styleText } from "node:util";
import Table from "cli-table3";
import { type MessageState, STATE_WORDS_ZH } from "rowpost/admin";
import { isChinese } from "../language.ts";
import type { CommandContext } from "./context.ts";

export function printJson(context: Pick<CommandContext, "stdout">, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

export function printLine(context: Pick<CommandContext, "stdout">, text: string): void {
  context.stdout.write(`${text}\n`);
}

/**
 * No frame, and columns separated by two blanks, so that a table can be pasted. Chinese characters
 * count as two.
 */
const PLAIN = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "  ",
};

export interface TableColumn {
  readonly title: string;
  readonly align?: "right" | undefined;
}

export function tableText(
  context: Pick<CommandContext, "colors" | "stdout">,
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
): string {
  const cells = rows.map((row) => row.map((cell) => withoutControls(cell)));
  const widths = fittingWidths([columns.map(({ title }) => title), ...cells], context.stdout.columns);
  const table = new Table({
    head: columns
      .map(({ title }, index) => clipped(title, widths[index] ?? title.length))
      .map((title) => (context.colors ? styleText("bold", title) : title)),
    chars: PLAIN,
    colAligns: columns.map(({ align }) => align ?? "left"),
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
  });
  table.push(...cells.map((row) => row.map((cell, index) => clipped(cell, widths[index] ?? cell.length))));
  return table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

const LEAST_WIDTH = 5;

/** Width of each column; on a terminal the widest shrink until a row fits. */
function fittingWidths(rows: readonly (readonly string[])[], most = Number.POSITIVE_INFINITY): number[] {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => widthOf(row[index] ?? ""))));
  const total = (): number => widths.reduce((sum, width) => sum + width + PLAIN.middle.length, -PLAIN.middle.length);
  for (let over = total() - most; over > 0; over = total() - most) {
    const widest = widths.indexOf(Math.max(...widths));
    const width = widths[widest] ?? 0;
    const next = Math.max(LEAST_WIDTH, ...widths.filter((each) => each < width));
    const narrower = Math.max(LEAST_WIDTH, width - over, Math.min(next, width - 1));
    if (narrower >= width) break;
    widths[widest] = narrower;
  }
  return widths;
}

/** Terminal columns: a Chinese character takes two. */
function widthOf(text: string): number {
  return Array.from(stripVTControlCharacters(text)).reduce((sum, each) => sum + (WIDE.test(each) ? 2 : 1), 0);
}
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

function clipped(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let [kept, taken] = ["", 1];
  for (const each of stripVTControlCharacters(text)) {
    taken += widthOf(each);
    if (taken > width) break;
    kept += each;
  }
  return `${kept}…`;
}

export function fieldsText(
  context: Pick<CommandContext, "colors">,
  fields: readonly (readonly [name: string, value: string])[],
): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields
    .map(([name, value]) => {
      const title = name.padEnd(width);
      return `${context.colors ? styleText("bold", title) : title}  ${value.replaceAll("\n", `\n${" ".repeat(width + 2)}`)}`;
    })
    .join("\n");
}

/** Bodies and reasons are data: an escape sequence in them must not reach the terminal. */
export function withoutControls(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ");
}

export function shortened(text: string, length: number): string {
  const characters = Array.from(text);
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join("")}…`;
}

const STATE_COLORS = {
  pending: "yellow",
  sending: "cyan",
  sent: "green",
  failed: "red",
  consumed: "green",
  suspended: "magenta",
} as const;

export function stateText(
  context: Pick<CommandContext, "colors" | "environment">,
  state: MessageState | "unknown",
): string {
  if (state === "unknown") return "unknown";
  const text = isChinese(context.environment) ? STATE_WORDS_ZH[state] : state;
  return context.colors ? styleText(STATE_COLORS[state], text) : text;
}

/** `850 ms`, `12 s`, `5 min`, `3 h`, `2 d`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

export function atLeastText({ atLeast, count }: { readonly atLeast: boolean; readonly count: number }): string {
  return `${count}${atLeast ? "+" : ""}`;
}

/** `1 message`, `2 messages`. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * A line on standard error that is overwritten as the work goes on; nothing if that is no terminal.
 */
export interface Progress {
  show(text: string): void;
  end(): void;
}

export function createProgress(context: Pick<CommandContext, "stderr">): Progress {
  const isTerminal = context.stderr.isTTY === true;
  let shown = false;
  return {
    show(text) {
      if (!isTerminal) return;
      context.stderr.write(`\r\u001b[2K${text}`);
      shown = true;
    },
    end() {
      if (shown) context.stderr.write("\r\u001b[2K");
      shown = false;
    },
  };
}
