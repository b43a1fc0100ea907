import { Command } from "commander";
import { CommandFailure } from "../../failure.ts";
import { InputError } from "../arguments.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { printJson, printLine } from "../output.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

interface DeleteFlags extends QueueFlags {
  readonly yes?: true;
}

export function deleteCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("delete"))
    .description("remove a topic with its messages, records, groups and dead letters")
    .argument("<topic>", "the topic")
    .option("--yes", "really: nothing of it can be had back")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue delete orders_test --yes --database sqlite:./app.db`,
    )
    .action(async (topic: string, flags: DeleteFlags) => {
      if (flags.yes !== true) throw new InputError(`--yes is missing: nothing of topic ${topic} could be had back`);
      const deleted = await withQueue(context, flags, (queue) => queue.deleteTopic(topic));
      if (!deleted) throw new CommandFailure(`the message queue has no topic "${topic}"`);
      if (flags.json === true) printJson(context, { topic, deleted });
      else printLine(context, `deleted topic ${topic}`);
      finish(0);
    });
}
