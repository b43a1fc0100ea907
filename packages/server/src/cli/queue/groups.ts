/** `rowpost queue groups`: lag of a topic's consumer groups, and its cause. */
import { Command } from "commander";
import type { CountUpTo, GroupPartition, GroupStatus } from "rowpost/queue";
import type { CommandContext, ExitCode } from "../context.ts";
import { atLeastText, durationText, printJson, printLine, shortened, tableText } from "../output.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

export function groupsCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("groups"))
    .description(
      "show the consumer groups of a topic: lag, members, what stands at the head, redeliveries, dead letters",
    )
    .argument("<topic>", "the topic")
    .argument("[group]", "only this consumer group")
    .addHelpText(
      "after",
      `
Counts are exact up to 10,000 a partition; 10000+ means at least so many.

Examples:
  rowpost queue groups orders --database sqlite:./app.db
  rowpost queue groups orders billing --json --database mysql://app@127.0.0.1/shop`,
    )
    .action(async (topic: string, group: string | undefined, flags: QueueFlags) => {
      const groups = await withQueue(context, flags, (queue) =>
        queue.groups({ topic, ...(group === undefined ? {} : { group }) }),
      );
      if (flags.json === true) printJson(context, groups);
      else if (groups.length === 0) printLine(context, `topic ${topic} has no consumer groups`);
      else printLine(context, groupsText(context, groups));
      finish(0);
    });
}

const COLUMNS = [
  "GROUP",
  "PARTITION",
  "LAG",
  "BEHIND FOR",
  "WAITING",
  "DEAD",
  "MEMBER",
  "SEEN",
  "HELD SINCE",
  "HEAD",
].map((title) => ({ title, ...(["LAG", "WAITING", "DEAD"].includes(title) ? { align: "right" as const } : {}) }));

function groupsText(context: CommandContext, groups: readonly GroupStatus[]): string {
  const rows = groups.flatMap((group) => [
    [
      group.group,
      "all",
      ...numbersOf(group),
      group.paused === undefined ? "" : `paused by ${group.paused.author}: ${shortened(group.paused.reason, 60)}`,
      "",
      group.paused?.at ?? "",
      "",
    ],
    ...group.partitions.map((each) => [
      "",
      String(each.partition),
      ...numbersOf(each),
      each.member === undefined ? "nobody" : (each.member.label ?? each.member.owner),
      each.member?.seenMsAgo === undefined ? "" : `${durationText(each.member.seenMsAgo)} ago`,
      each.member?.since ?? "",
      headText(each),
    ]),
  ]);
  return tableText(context, COLUMNS, rows);
}

function numbersOf(of: {
  readonly lag: CountUpTo;
  readonly lagMs: number;
  readonly waiting: CountUpTo;
  readonly dead: CountUpTo;
}): string[] {
  const { lag, lagMs, waiting, dead } = of;
  return [atLeastText(lag), lag.count === 0 ? "" : durationText(lagMs), atLeastText(waiting), atLeastText(dead)];
}

function headText({ head, oldestWaiting }: GroupPartition): string {
  const error = oldestWaiting?.error;
  return [
    ...(head === undefined ? [] : [`${head.id}${head.key === undefined ? "" : ` key=${head.key}`}`]),
    ...(oldestWaiting === undefined
      ? []
      : [`redelivery ${oldestWaiting.id}${error === undefined ? "" : `: ${shortened(error, 60)}`}`]),
  ].join("; ");
}
