/** Results as a table: plain for a terminal, or Markdown. */
import type { BenchResult, Target } from "./result.ts";

interface Column {
  readonly title: string;
  readonly cell: (result: BenchResult) => string;
  /** Omitted if every row is empty. */
  readonly optional?: boolean;
}

const COLUMNS: readonly Column[] = [
  { title: "scenario", cell: ({ scenario }) => scenario, optional: true },
  { title: "database", cell: ({ database, serverVersion }) => `${database} ${serverVersion}` },
  { title: "variant", cell: ({ variant }) => variant },
  { title: "messages", cell: ({ messages }) => grouped(messages) },
  { title: "msg/s", cell: ({ ratePerSecond }) => grouped(ratePerSecond), optional: true },
  { title: "raw msg/s", cell: ({ rawRatePerSecond }) => grouped(rawRatePerSecond), optional: true },
  { title: "ratio", cell: ({ ratioToRaw }) => plain(ratioToRaw), optional: true },
  { title: "statements/msg", cell: ({ statementsPerMessage }) => plain(statementsPerMessage), optional: true },
  { title: "p50 ms", cell: ({ p50Ms }) => plain(p50Ms), optional: true },
  { title: "p99 ms", cell: ({ p99Ms }) => plain(p99Ms), optional: true },
  { title: "client CPU ms/1000", cell: (row) => beside(row.clientCpuMsPer1000, row.rawClientCpuMsPer1000) },
  { title: "server CPU ms/1000", cell: (row) => beside(row.serverCpuMsPer1000, row.rawServerCpuMsPer1000) },
  { title: "foreign CPU %", cell: ({ foreignCpuPercent }) => plain(foreignCpuPercent) },
  { title: "targets", cell: ({ targets }) => targets.map(targetText).join("; "), optional: true },
  { title: "also", cell: ({ figures }) => figuresText(figures), optional: true },
];

/** Cells of the non-empty columns. The first line holds the titles. */
function cellsOf(results: readonly BenchResult[]): string[][] {
  const shown = COLUMNS.filter(
    ({ cell, optional }) => optional !== true || results.some((result) => cell(result) !== ""),
  );
  return [shown.map(({ title }) => title), ...results.map((result) => shown.map(({ cell }) => cell(result)))];
}

export function plainTable(results: readonly BenchResult[]): string {
  const lines = cellsOf(results);
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function markdownTable(results: readonly BenchResult[]): string {
  const [titles = [], ...rows] = cellsOf(results);
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell || "–").join(" | ")} |`;
  return [line(titles), line(titles.map(() => "---")), ...rows.map(line)].join("\n");
}

/** `ratioToRaw 0.91 >= 0.85 ok`. */
export function targetText({ figure, atLeast, atMost, value, met }: Target): string {
  const limit = atLeast === undefined ? `<= ${atMost}` : `>= ${atLeast}`;
  return `${figure} ${value ?? "unknown"} ${limit} ${met ? "ok" : "MISSED"}`;
}

function figuresText(figures: BenchResult["figures"]): string {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${value ?? "–"}`)
    .join(", ");
}

/** Ours, with the raw loop's in parentheses. */
function beside(ours: number | null, raw: number | null): string {
  return raw === null ? plain(ours) : `${plain(ours)} (raw ${plain(raw)})`;
}

function plain(value: number | null): string {
  return value === null ? "" : String(value);
}

function grouped(value: number | null): string {
  return value === null ? "" : value.toLocaleString("en-US");
}
