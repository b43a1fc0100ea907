import { Command } from "commander";
import type { CommandContext, ExitCode } from "../context.ts";
import { printJson, printLine } from "../output.ts";
import { addQueueOptions, withQueue } from "./connection.ts";
import { addTopicOptions, type TopicFlags, topicOptions } from "./topic-options.ts";
import { topicsText } from "./topics.ts";

export function alterCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addTopicOptions(new Command("alter")))
    .description("give a topic more partitions, or another retention")
    .argument("<topic>", "the topic")
    .addHelpText(
      "after",
      `
Messages with an ordering key go to new partitions once no group has unread messages: run it again
then, without options.

Examples:
  rowpost queue alter orders --partitions 16 --database mysql://app@127.0.0.1/shop
  rowpost queue alter orders --retention ever --database sqlite:./app.db`,
    )
    .action(async (topic: string, flags: TopicFlags) => {
      const altered = await withQueue(context, flags, (queue) => queue.alterTopic(topicOptions(topic, flags)));
      if (flags.json === true) printJson(context, altered);
      else {
        printLine(context, topicsText(context, [altered]));
        if (altered.keyedPartitions < altered.partitions) {
          printLine(
            context,
            `messages with an ordering key still go to the first ${altered.keyedPartitions} partitions: a group has unread messages; run it again when it has none`,
          );
        }
      }
      finish(0);
    });
}
