import { FINDING_KINDS, type Finding, type ReconcileReport } from "rowpost/admin";
import type { CommandContext } from "./context.ts";
import { countText, printLine, shortened, tableText } from "./output.ts";

export const FORMATS = ["table", "json", "csv"] as const;
export type Format = (typeof FORMATS)[number];

export interface FindingsOutput {
  add(finding: Finding): void;
  end(report: ReconcileReport): void;
}

export function createFindingsOutput(context: CommandContext, format: Format): FindingsOutput {
  return { table: tableOutput, json: jsonOutput, csv: csvOutput }[format](context);
}

const MOST_SHOWN = 1_000;

function tableOutput(context: CommandContext): FindingsOutput {
  const shown: Finding[] = [];
  return {
    add(finding) {
      if (shown.length < MOST_SHOWN) shown.push(finding);
    },
    end(report) {
      if (shown.length > 0) printLine(context, `${findingsText(context, shown)}\n`);
      if (report.findings > shown.length) {
        printLine(context, `and ${report.findings - shown.length} more: --format csv has all of them\n`);
      }
      for (const text of adviceOf(shown)) printLine(context, text);
      printLine(context, summaryText(report));
      for (const note of report.notes) printLine(context, note);
    },
  };
}

function findingsText(context: CommandContext, findings: readonly Finding[]): string {
  const titles = ["FOUND", "TYPE", "KEY", "ID", "AT", "WHAT IS WRONG"];
  return tableText(
    context,
    titles.map((title) => ({ title, ...(title === "ID" ? { align: "right" as const } : {}) })),
    findings.map(({ at, id, key, kind, problem, type }) => [
      ...[kind, type, key, id ?? "", at ?? ""],
      shortened(problem, 120),
    ]),
  );
}

function adviceOf(findings: readonly Finding[]): string[] {
  const firsts = new Map<string, string>();
  for (const { advice, kind } of findings) if (!firsts.has(kind)) firsts.set(kind, advice);
  return firsts.size === 0 ? [] : [...[...firsts].map(([kind, advice]) => `${kind}: ${advice}`), ""];
}

function summaryText({ counts, findings, from, looked, to }: ReconcileReport): string {
  const found = FINDING_KINDS.filter((kind) => counts[kind] > 0).map((kind) => `${counts[kind]} ${kind}`);
  const seen = [
    ...(looked.businessRows > 0 ? [countText(looked.businessRows, "business row")] : []),
    countText(looked.messages, "message"),
    ...(looked.handlings > 0 ? [`${countText(looked.handlings, "row")} of the inbox`] : []),
  ];
  return `${findings === 0 ? "nothing found" : found.join(", ")}; looked at ${seen.join(", ")}, from ${from} to ${to}`;
}

function jsonOutput({ stdout }: CommandContext): FindingsOutput {
  let isFirst = true;
  return {
    add(finding) {
      stdout.write(`${isFirst ? '{\n  "list": [' : ","}\n    ${JSON.stringify(finding)}`);
      isFirst = false;
    },
    end(report) {
      const rest = JSON.stringify(report, undefined, 2).slice(1);
      stdout.write(`${isFirst ? '{\n  "list": []' : "\n  ]"},${rest}\n`);
    },
  };
}

const COLUMNS = ["kind", "type", "key", "id", "at", "consumer", "problem", "advice"] as const;

function csvOutput({ stderr, stdout }: CommandContext): FindingsOutput {
  const line = (cells: readonly string[]): string => `${cells.map(csvCell).join(",")}\n`;
  let isBegun = false;
  const begin = (): void => {
    if (!isBegun) stdout.write(line(COLUMNS));
    isBegun = true;
  };
  return {
    add(finding) {
      begin();
      stdout.write(line(COLUMNS.map((column) => finding[column] ?? "")));
    },
    end({ notes }) {
      begin();
      for (const note of notes) stderr.write(`rowpost: ${note}\n`);
    },
  };
}

/** A key is user input: a spreadsheet must not take it for a formula. */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
