import { Command } from "commander";
import type { TopicSettings } from "rowpost/queue";
import type { CommandContext, ExitCode } from "../context.ts";
import { printJson, printLine, tableText } from "../output.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

export function topicsCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("topics"))
    .description("list the topics")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue topics --database sqlite:./app.db
  rowpost queue topics --database mysql://app@127.0.0.1/shop --json`,
    )
    .action(async (flags: QueueFlags) => {
      const topics = await withQueue(context, flags, (queue) => queue.topics());
      if (flags.json === true) printJson(context, topics);
      else if (topics.length === 0) printLine(context, "no topics");
      else printLine(context, topicsText(context, topics));
      finish(0);
    });
}

export function topicsText(context: CommandContext, topics: readonly TopicSettings[]): string {
  return tableText(
    context,
    [
      { title: "TOPIC" },
      { title: "PARTITIONS", align: "right" },
      { title: "FOR KEYS", align: "right" },
      { title: "KEPT FOR", align: "right" },
    ],
    topics.map(({ topic, partitions, keyedPartitions, retentionMonths }) => [
      topic,
      String(partitions),
      String(keyedPartitions),
      retentionMonths === null ? "ever" : `${retentionMonths} months`,
    ]),
  );
}
