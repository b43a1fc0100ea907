import { Command, Option } from "commander";
import type { DeadLetter } from "rowpost/queue";
import { wholeNumber } from "../arguments.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { printJson, printLine, shortened, tableText } from "../output.ts";
import { queueId } from "./by-hand.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

export interface DeadFilterFlags extends QueueFlags {
  readonly error?: string;
  readonly state: "dead" | "waiting" | "both";
}

interface DeadFlags extends DeadFilterFlags {
  readonly limit: number;
  readonly after?: string;
}

export function addDeadFilter(command: Command): Command {
  return command
    .option("--error <text>", "part of the last error")
    .addOption(
      new Option("--state <state>", "dead: given up; waiting: comes again")
        .choices(["dead", "waiting", "both"])
        .default("dead"),
    );
}

export function deadCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addDeadFilter(new Command("dead")))
    .description("list the dead letters of a consumer group, with their errors")
    .argument("<topic>", "the topic")
    .argument("<group>", "the consumer group")
    .option("--limit <n>", "at most this many", wholeNumber(1, 10_000), 100)
    .option("--after <id>", "only those behind this one: where the last list ended", queueId)
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue dead orders billing --database sqlite:./app.db
  rowpost queue dead orders billing --error "no such customer" --json --database mysql://app@127.0.0.1/shop
  rowpost queue dead orders billing --state waiting --database sqlite:./app.db`,
    )
    .action(async (topic: string, group: string, flags: DeadFlags) => {
      const { error, state, limit, after } = flags;
      const page = await withQueue(context, flags, (queue) =>
        queue.deadLetters({ topic, group, error, state, limit, after }),
      );
      if (flags.json === true) {
        const letters = page.letters.map(({ message, ...letter }) => ({
          ...letter,
          message: message === undefined ? null : { ...message, body: bodyOf(message.body) },
        }));
        printJson(context, { ...page, letters });
      } else if (page.letters.length === 0) printLine(context, "none");
      else {
        printLine(context, lettersText(context, page.letters));
        if (page.next !== undefined) printLine(context, `there are more: --after ${page.next}`);
      }
      finish(0);
    });
}

/** JSON needs bytes as base64. */
function bodyOf(body: unknown): unknown {
  return body instanceof Uint8Array ? Buffer.from(body).toString("base64") : body;
}

function lettersText(context: CommandContext, letters: readonly DeadLetter[]): string {
  const columns = ["ID", "STATE", "ATTEMPTS", "KEY", "TYPE", "SINCE", "NEXT", "ERROR"].map((title) => ({ title }));
  const rows = letters.map(({ id, state, attempt, message, since, nextAttemptAt, error }) => [
    ...[id, state, String(attempt), message?.key ?? "", message?.type ?? ""],
    ...[since, nextAttemptAt ?? "", shortened(error ?? "", 80)],
  ]);
  return tableText(context, columns, rows);
}
