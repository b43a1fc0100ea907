/** `rowpost queue search`: messages of a topic, and how complete the answer is. */
import { Command, InvalidArgumentError } from "commander";
import type { QueueMessageSummary, QueueSearchAnswer } from "rowpost/queue";
import { duration, instant, wholeNumber } from "../arguments.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { countText, printJson, printLine, tableText } from "../output.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

interface SearchFlags extends QueueFlags {
  readonly key?: string;
  readonly id?: string;
  readonly header?: { readonly name: string; readonly value: string };
  readonly type?: string;
  readonly from?: Date;
  readonly to?: Date;
  readonly limit?: number;
  readonly before?: string;
  readonly timeLimit?: number;
}

export function searchCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("search"))
    .description("search a topic, the newest first; says what was searched, and whether that was all")
    .argument("<topic>", "the topic")
    .option("--key <key>", "with this business key (along an index)")
    .option("--id <id>", "this message")
    .option("--header <name=value>", "with this header (looks at every message of the range)", oneHeader)
    .option("--type <type>", "of this message type (looks at every message of the range)")
    .option("--from <instant>", "appended then or later: 2026-11-21T08:00:00Z, or how long ago (2h)", date)
    .option("--to <instant>", "appended before", date)
    .option("--limit <n>", "messages of a page (default: 50)", wholeNumber(1, 1_000))
    .option("--before <id>", "the page behind this id")
    .option("--time-limit <duration>", "answer with what was found by then (default: 5s)", duration)
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue search orders --key 4711 --database sqlite:./app.db
  rowpost queue search orders --from 2026-10-01T00:00:00Z --to 2026-11-01T00:00:00Z --database sqlite:./app.db
  rowpost queue search orders --header trace=ab12 --from 2h --json --database mysql://app@127.0.0.1/shop`,
    )
    .action(async (topic: string, flags: SearchFlags) => {
      const { key, id, header, type, from, to, limit, before, timeLimit: timeLimitMs } = flags;
      const search = { topic, key, id, header, type, from, to, limit, before, timeLimitMs };
      const answer = await withQueue(context, flags, (queue) => queue.search(search));
      if (flags.json === true) printJson(context, answer);
      else {
        if (answer.messages.length > 0) printLine(context, foundText(context, answer.messages));
        for (const line of beliefText(answer)) printLine(context, line);
      }
      finish(0);
    });
}

function foundText(context: CommandContext, messages: readonly QueueMessageSummary[]): string {
  return tableText(
    context,
    [
      { title: "ID" },
      { title: "SENT AT" },
      { title: "PARTITION", align: "right" },
      { title: "TYPE" },
      { title: "KEY" },
    ],
    messages.map(({ id, sentAt, partition, type, key }) => [
      id,
      sentAt.toISOString(),
      String(partition),
      type ?? "",
      key ?? "",
    ]),
  );
}

function beliefText({
  messages,
  rows,
  months,
  stopped,
  next,
  droppedMonths,
  absentMonths,
}: QueueSearchAnswer): string[] {
  const where = months.length === 0 ? "no month has a table there" : `searched ${months.join(", ")}`;
  const ends = { end: "that was all", limit: "there may be more", time: "the time was over" }[stopped];
  return [
    `${countText(messages.length, "message")}; ${where}; looked at ${rows}; ${ends}`,
    ...(next === undefined ? [] : [`go on with --before ${next}`]),
    ...droppedMonths.map(
      ({ month, messages: count, author, droppedAt, reason, archive }) =>
        `${month} was dropped at ${droppedAt} by ${author} (${reason}): ${countText(count, "message")}${archive === null ? "" : `, archived to ${archive}`}`,
    ),
    ...(absentMonths.length === 0
      ? []
      : [`no tables of ${absentMonths.join(", ")}: nothing was appended, or they were dropped by hand`]),
  ];
}

function date(text: string): Date {
  return new Date(instant(text));
}

function oneHeader(text: string): { name: string; value: string } {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be NAME=VALUE.");
  return { name: text.slice(0, at), value: text.slice(at + 1) };
}
