/** How results look: tables for people, JSON for programs, the words of states, durations. */
import { styleText } from "node:util";
import Table from "cli-table3";
import { type MessageState, STATE_WORDS_ZH } from "rowpost";
import type { CommandContext } from "./context.ts";

/** Prints a value as one JSON document. */
export function printJson(context: Pick<CommandContext, "stdout">, value: unknown): void {
  context.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** Prints a line. */
export function printLine(context: Pick<CommandContext, "stdout">, text: string): void {
  context.stdout.write(`${text}\n`);
}

/**
 * No frame: columns parted by two blanks, so that a table can be cut and pasted. Chinese characters
 * count as two, so columns stay aligned.
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

/** A column: its title, and `right` for numbers. */
export interface TableColumn {
  readonly title: string;
  readonly align?: "right" | undefined;
}

/** The text of a table, without the line feed at its end. */
export function tableText(
  context: Pick<CommandContext, "colors">,
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
): string {
  const table = new Table({
    head: columns.map(({ title }) => (context.colors ? styleText("bold", title) : title)),
    chars: PLAIN,
    colAligns: columns.map(({ align }) => align ?? "left"),
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
  });
  table.push(...rows.map((row) => row.map((cell) => withoutControls(cell))));
  return table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

/** Names and values below each other. */
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

/** At most `length` characters, with an ellipsis where something is missing. */
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

/** A state with its Chinese word: `sent 已发送`. */
export function stateText(context: Pick<CommandContext, "colors">, state: MessageState | "unknown"): string {
  if (state === "unknown") return "unknown";
  const text = `${state} ${STATE_WORDS_ZH[state]}`;
  return context.colors ? styleText(STATE_COLORS[state], text) : text;
}

/** `850 ms`, `12 s`, `5 min`, `3 h`, `2 d`: what is enough to judge an age by. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** A count, with `+` where there may be more. */
export function atLeastText({ atLeast, count }: { readonly atLeast: boolean; readonly count: number }): string {
  return `${count}${atLeast ? "+" : ""}`;
}

/** `1 message`, `2 messages`. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * A line on standard error that is written over as the work goes on; nothing where that is not a
 * terminal.
 */
export interface Progress {
  show(text: string): void;
  /** Takes the line away. */
  end(): void;
}

/** Makes the progress line of a command. */
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
