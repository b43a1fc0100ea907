import { Command } from "commander";
import { type Confirmation, type ConfirmationResult, createOutbox } from "rowpost";
import { InputError, wholeNumber } from "./arguments.ts";
import { addConsumersOption, type ConsumersByType, confirmedTypes } from "./confirm-options.ts";
import { printUnknown, readUnknown } from "./confirm-unknown.ts";
import { addConnectionOptions, type ConnectionFlags, withDatabase } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { contentOf } from "./input-file.ts";
import { countText, createProgress, printJson, printLine } from "./output.ts";

interface ConfirmFlags extends ConnectionFlags {
  readonly type?: string;
  readonly key?: string;
  readonly consumer?: string;
  readonly error?: string;
  readonly attempt?: number;
  readonly file?: string;
  readonly unknown?: true;
  readonly consumers?: ConsumersByType;
}

/** Reports per call, so that progress shows. */
const BATCH = 5_000;

export function confirmCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const command = addConnectionOptions(new Command("confirm"))
    .description("say that a message is consumed, or with --error that its consumer has given it up")
    .option("--type <type>", "message type")
    .option("--key <key>", "message key")
    .option("--consumer <name>", "who reports; needed for a type of --consumers")
    .option("--error <text>", "why it could not be handled; its deadline comes at once")
    .option(
      "--attempt <n>",
      "with --error: the attempt that it is about, the header rowpost-attempt",
      wholeNumber(0, 2 ** 31),
    )
    .option(
      "--file <path>",
      "a JSON object for each line instead: type, key, consumer, error, attempt; - is standard input",
    )
    .option("--unknown", "list what was confirmed of messages that were not there, and confirm nothing");
  return addConsumersOption(command)
    .addHelpText(
      "after",
      `
Exit code 1: some messages are neither in the table nor in its archive.

Examples:
  rowpost confirm --type order.paid --key 4711 --database mysql://app@127.0.0.1/shop
  rowpost confirm --type order.paid --key 4711 --consumer billing --consumers order.paid=billing,stock --database sqlite:./app.db
  rowpost confirm --file consumed.ndjson --database postgres://app@127.0.0.1/shop
  rowpost confirm --unknown --database postgres://app@127.0.0.1/shop`,
    )
    .action(async (flags: ConfirmFlags) => {
      if (flags.unknown === true) return finish(await listUnknown(context, flags));
      const reports = await reportsOf(flags);
      const results = await withDatabase(context, flags, { mayCreateFile: false }, async ({ database, layout }) => {
        const outbox = createOutbox({ database, layout, types: confirmedTypes(flags.consumers) });
        const progress = createProgress(context);
        const all: ConfirmationResult[] = [];
        try {
          for (let from = 0; from < reports.length; from += BATCH) {
            all.push(...(await outbox.confirm(reports.slice(from, from + BATCH))));
            progress.show(`${countText(all.length, "report")} …`);
          }
        } finally {
          progress.end();
        }
        return all;
      });
      finish(print(context, flags, reports, results));
    });
}

async function listUnknown(context: CommandContext, flags: ConfirmFlags): Promise<ExitCode> {
  if ([flags.error, flags.attempt, flags.file, flags.consumers].some((each) => each !== undefined)) {
    throw new InputError("--unknown confirms nothing: only --type, --key and --consumer go with it");
  }
  const unknown = await withDatabase(context, flags, { mayCreateFile: false }, ({ database, layout }) =>
    readUnknown(database, layout, flags),
  );
  printUnknown(context, unknown, flags.json === true);
  return 0;
}

async function reportsOf(flags: ConfirmFlags): Promise<readonly Confirmation[]> {
  const { type, key, consumer, error, attempt, file } = flags;
  if (file === undefined) {
    if (type === undefined || key === undefined) {
      throw new InputError("which message? Give --type and --key, or --file PATH (- is standard input)");
    }
    return [{ type, key, consumer, error, attempt }];
  }
  if ([type, key, error, attempt].some((each) => each !== undefined)) {
    throw new InputError("--type, --key, --error and --attempt stand in the lines of --file");
  }
  const lines = (await contentOf(file)).split(/\r?\n/);
  return lines.flatMap((line, index) => (line.trim() === "" ? [] : [reportIn(line, index + 1, consumer)]));
}

function reportIn(line: string, number: number, consumer: string | undefined): Confirmation {
  let report: unknown;
  try {
    report = JSON.parse(line);
  } catch {
    report = undefined;
  }
  if (typeof report !== "object" || report === null || !("type" in report) || !("key" in report)) {
    throw new InputError(`--file, line ${number}: must be a JSON object such as {"type":"order.paid","key":"4711"}`);
  }
  return { ...(consumer === undefined ? {} : { consumer }), ...(report as Confirmation) };
}

function print(
  context: CommandContext,
  { json }: ConfirmFlags,
  reports: readonly Confirmation[],
  results: readonly ConfirmationResult[],
): ExitCode {
  const told = reports.map(({ type, key }, index) => ({ type, key, ...results[index] }));
  const unknown = told.filter(({ status }) => status === "unknown");
  if (json === true) printJson(context, told);
  else {
    const counts = new Map<string, number>();
    for (const { status } of results) counts.set(status, (counts.get(status) ?? 0) + 1);
    const [only, ...others] = told;
    const waitsFor = others.length === 0 ? (only?.waitingFor ?? []) : [];
    const words = [...counts].map(([status, count]) => (told.length === 1 ? status : `${count} ${status}`));
    printLine(context, `${words.join(", ") || "no report"}${waitsFor.length > 0 ? ` for ${waitsFor.join(", ")}` : ""}`);
    for (const { type, key } of unknown) {
      printLine(context, `neither in the table nor in its archive: ${type}:${key}`);
    }
  }
  return unknown.length > 0 ? 1 : 0;
}
