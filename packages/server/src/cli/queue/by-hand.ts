import { type Command, InvalidArgumentError } from "commander";
import type { HandReport } from "rowpost/queue";
import type { CommandContext, ExitCode } from "../context.ts";
import { type ActionFlags, actionOf } from "../filter.ts";
import { countText, printJson, printLine } from "../output.ts";
import type { QueueFlags } from "./connection.ts";

export interface HandFlags extends QueueFlags, ActionFlags {}

export function addHandOptions(command: Command): Command {
  return command
    .option("--reason <text>", "why; kept with it")
    .option("--author <name>", "who; kept with it (default: the user of the operating system)");
}

/** Without --reason it is `usual`, or refused. */
export function handOf(
  context: CommandContext,
  flags: HandFlags,
  usual?: string,
): { readonly author: string; readonly reason: string } {
  const { author, reason } = actionOf(context, flags, usual);
  return { author, reason };
}

export function queueId(text: string): string {
  if (/^\d{1,19}$/.test(text)) return text;
  throw new InvalidArgumentError(`"${text}" is not an id: ids are the decimal numbers that send and tail print.`);
}

/** Exit code 1 if the state of a named message does not allow the change. */
export function printReport(
  context: CommandContext,
  report: HandReport,
  { verb, json }: { readonly verb: string; readonly json: boolean },
): ExitCode {
  const { changed, conflicts } = report;
  if (json) printJson(context, report);
  else {
    printLine(context, `${verb} ${countText(changed, "message")}`);
    for (const { id, state } of conflicts) {
      printLine(
        context,
        `not changed: ${id} ${state === "absent" ? "is no redelivery or dead letter" : `is ${state}`}`,
      );
    }
  }
  return conflicts.length > 0 ? 1 : 0;
}
