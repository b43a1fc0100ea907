/** `rowpost operation`: changes of many messages that the console has started. */
import { Command } from "commander";
import type { BulkConflict, BulkOperation, BulkStore } from "rowpost";
import { InputError, wholeNumber } from "./arguments.ts";
import { addConnectionOptions, type ConnectionFlags, withDatabase } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { CommandFailure } from "./failure.ts";
import { type ActionFlags, actionOf, addActionOptions } from "./filter.ts";
import { countText, fieldsText, printJson, printLine, tableText, withoutControls } from "./output.ts";

type Finish = (code: ExitCode) => void;

/** What a command does to an operation, and how that is told. */
const MOVES = {
  pause: { to: "paused", about: "let an operation rest after its batch", example: "too fast" },
  resume: { to: "running", about: "let a paused operation go on", example: "at night" },
  cancel: {
    to: "cancelled",
    about: "end an operation after its batch; what is changed stays so",
    example: "wrong topic",
  },
} as const;

const ID = "3f0c6b1e-6a51-4a52-a1be-97c16e76986e";

/** The command; `finish` takes its exit code. */
export function operationCommand(context: CommandContext, finish: Finish): Command {
  const command = new Command("operation")
    .description("changes of many messages: how far they are, and pausing, resuming and cancelling them")
    .addCommand(listCommand(context, finish))
    .addCommand(showCommand(context, finish));
  for (const name of ["pause", "resume", "cancel"] as const) command.addCommand(moveCommand(name, context, finish));
  return command;
}

function listCommand(context: CommandContext, finish: Finish): Command {
  return addConnectionOptions(new Command("list"))
    .description("list changes of many messages, the newest first, 100 at most")
    .addHelpText(
      "after",
      `
Examples:
  rowpost operation list --database sqlite:./app.db
  rowpost operation list --database mysql://app@127.0.0.1/shop --json`,
    )
    .action(async (flags: ConnectionFlags) => {
      const operations = await withBulk(context, flags, (bulk) => bulk.list());
      if (flags.json === true) printJson(context, operations);
      else printLine(context, operations.length === 0 ? "none" : listText(context, operations));
      finish(0);
    });
}

interface ShowFlags extends ConnectionFlags {
  readonly limit: number;
}

function showCommand(context: CommandContext, finish: Finish): Command {
  return addConnectionOptions(new Command("show"))
    .description("show an operation, and the messages that it left as they were")
    .argument("<id>", "id of the operation", operationId)
    .option("--limit <n>", "at most so many of these messages", wholeNumber(1, 10_000), 200)
    .addHelpText(
      "after",
      `
Examples:
  rowpost operation show ${ID} --database sqlite:./app.db`,
    )
    .action(async (id: string, flags: ShowFlags) => {
      const { conflicts, operation } = await withBulk(context, flags, async (bulk) => ({
        operation: await known(bulk, id),
        conflicts: await bulk.conflicts({ id, afterId: "0", limit: flags.limit }),
      }));
      if (flags.json === true) printJson(context, { operation, conflicts });
      else printLine(context, showText(context, operation, conflicts));
      finish(0);
    });
}

function moveCommand(name: keyof typeof MOVES, context: CommandContext, finish: Finish): Command {
  const { about, example, to } = MOVES[name];
  return addActionOptions(addConnectionOptions(new Command(name)))
    .description(about)
    .argument("<id>", "id of the operation", operationId)
    .addHelpText(
      "after",
      `
Exit codes: 0 done, 1 its state forbids it, or there is none, 2 wrong input.

Examples:
  rowpost operation ${name} ${ID} --reason "${example}" --database sqlite:./app.db`,
    )
    .action(async (id: string, flags: ConnectionFlags & ActionFlags) => {
      const action = actionOf(context, flags);
      const { isMoved, operation } = await withBulk(context, flags, async (bulk) => ({
        isMoved: await bulk.move({ id, to, action }),
        operation: await known(bulk, id),
      }));
      if (flags.json === true) printJson(context, { changed: isMoved, operation });
      else if (isMoved) printLine(context, `${operation.kind} is ${to}: ${progressText(operation)}`);
      else printLine(context, `not changed: the operation is ${operation.state}`);
      finish(isMoved ? 0 : 1);
    });
}

async function withBulk<Result>(
  context: CommandContext,
  flags: ConnectionFlags,
  work: (bulk: BulkStore) => Promise<Result>,
): Promise<Result> {
  return await withDatabase(context, flags, { mayCreateFile: false }, async ({ database, layout }) => {
    const bulk = database.bulk({ layout });
    try {
      return await work(bulk);
    } finally {
      await bulk.close();
    }
  });
}

function operationId(text: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text.toLowerCase();
  throw new InputError(`${text} is no id of an operation: rowpost operation list shows them`);
}

/** A preview that nobody has started is none yet. */
async function known(bulk: BulkStore, id: string): Promise<BulkOperation> {
  const operation = await bulk.read(id);
  if (operation !== undefined && operation.state !== "preview") return operation;
  throw new CommandFailure(`there is no operation ${id}: rowpost operation list shows them`);
}

/** `1200 of 5000 changed, 3 conflicts, 1 gone`. */
function progressText({ changed, conflicts, planned, total, vanished }: BulkOperation): string {
  return `${changed} of ${total}${planned ? "" : "+"} changed, ${countText(conflicts, "conflict")}, ${vanished} gone`;
}

function listText(context: CommandContext, operations: readonly BulkOperation[]): string {
  const columns = ["ID", "KIND", "STATE", "PROGRESS", "BY", "WHY", "STARTED"].map((title) => ({ title }));
  const rows = operations.map((each) => [
    ...[each.id, each.kind, each.state, progressText(each), each.author, each.reason, each.startedAt ?? ""],
  ]);
  return tableText(context, columns, rows);
}

function showText(context: CommandContext, operation: BulkOperation, conflicts: readonly BulkConflict[]): string {
  const { author, createdAt, endedAt, error, id, kind, rate, reason, startedAt, state } = operation;
  const fields = fieldsText(context, [
    ["id", id],
    ["kind", kind],
    ["state", state],
    ["filter", withoutControls(JSON.stringify(operation.filter))],
    ["progress", progressText(operation)],
    ["rate", `${rate} a second`],
    ["by", withoutControls(author)],
    ["why", withoutControls(reason)],
    ...(error === null ? [] : [["error", withoutControls(error)] as const]),
    ["created", createdAt],
    ["started", startedAt ?? ""],
    ["ended", endedAt ?? ""],
  ]);
  const left = conflicts.map((each) => `left as it was: ${each.id} is ${each.state}`);
  return [fields, ...left].join("\n");
}
