import { Command } from "commander";
import { InputError } from "./arguments.ts";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { type ActionFlags, actionOf, addActionOptions } from "./filter.ts";
import { countText, printJson, printLine } from "./output.ts";

interface ResetFlags extends ConnectionFlags, ActionFlags {
  readonly topic?: string;
}

export function resetBackoffCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addActionOptions(addConnectionOptions(new Command("reset-backoff")))
    .description("bring all messages of a topic forward that wait for their next attempt, after an outage")
    .option("--topic <topic>", "the topic")
    .addHelpText(
      "after",
      `
They come due in the order of their ids, a thousand a second. Attempts stay counted, and a delay is
not cut short. \`rowpost retry --now\` does it for messages that you name.

Examples:
  rowpost reset-backoff --database sqlite:./app.db --topic orders
  rowpost reset-backoff --database mysql://app@127.0.0.1/shop --topic orders --reason "broker is back"`,
    )
    .action(async (flags: ResetFlags) => {
      const { topic } = flags;
      if (topic === undefined || topic === "") throw new InputError("--topic is missing: whose messages?");
      const action = actionOf(context, flags, "backoff reset by hand");
      const changed = await withAdmin(context, flags, (admin) => admin.resetBackoff({ topic, action }));
      if (flags.json === true) printJson(context, { changed });
      else printLine(context, `brought ${countText(changed, "message")} forward`);
      finish(0);
    });
}
