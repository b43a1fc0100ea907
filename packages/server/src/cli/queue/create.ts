/** `rowpost queue create`: creates a topic, and with the first one the queue's own tables. */
import { Command } from "commander";
import type { CommandContext, ExitCode } from "../context.ts";
import { printJson, printLine } from "../output.ts";
import { addQueueOptions, withQueue } from "./connection.ts";
import { addTopicOptions, type TopicFlags, topicOptions } from "./topic-options.ts";
import { topicsText } from "./topics.ts";

export function createCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addTopicOptions(new Command("create")))
    .description(
      "make a topic and its tables, and the queue's own where they are missing; one that is there stays as it is",
    )
    .argument("<topic>", "1 to 31 characters of a-z, 0-9 and _")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue create orders --database sqlite:./app.db
  rowpost queue create orders --partitions 8 --retention 6 --database mysql://app@127.0.0.1/shop`,
    )
    .action(async (topic: string, flags: TopicFlags) => {
      const made = await withQueue(
        context,
        flags,
        async (queue) => {
          await queue.migrate();
          return await queue.createTopic(topicOptions(topic, flags));
        },
        { mayCreateFile: true },
      );
      if (flags.json === true) printJson(context, made);
      else {
        printLine(context, topicsText(context, [made.topic]));
        if (!made.created) printLine(context, `topic ${topic} was there already; \`rowpost queue alter\` changes it`);
      }
      finish(0);
    });
}
