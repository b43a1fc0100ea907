import { Command } from "commander";
import { CommandFailure } from "../../failure.ts";
import { InputError } from "../arguments.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { printJson, printLine } from "../output.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

interface DeleteGroupFlags extends QueueFlags {
  readonly yes?: true;
}

export function deleteGroupCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("delete-group"))
    .description("remove a consumer group that nobody reads with any more: its progress, redeliveries and dead letters")
    .argument("<topic>", "the topic")
    .argument("<group>", "the consumer group; of a broadcast group@instance")
    .option("--yes", "really: nothing of it can be had back")
    .addHelpText(
      "after",
      `
It is refused while a member lives: one that was killed counts for 30 seconds.

Examples:
  rowpost queue delete-group orders cache@web-7 --yes --database sqlite:./app.db`,
    )
    .action(async (topic: string, group: string, flags: DeleteGroupFlags) => {
      if (flags.yes !== true) throw new InputError(`--yes is missing: nothing of group ${group} could be had back`);
      const deleted = await withQueue(context, flags, (queue) => queue.deleteGroup({ topic, group }));
      if (!deleted) throw new CommandFailure(`topic ${topic} has no consumer group "${group}"`);
      if (flags.json === true) printJson(context, { topic, group, deleted });
      else printLine(context, `deleted group ${group}`);
      finish(0);
    });
}
