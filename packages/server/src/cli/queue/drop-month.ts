/** `rowpost queue drop-month`: drops the tables of a past month, archived first on request. */
import { Command } from "commander";
import { InputError, wholeNumber } from "../arguments.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { countText, printJson, printLine } from "../output.ts";
import { addHandOptions, type HandFlags, handOf } from "./by-hand.ts";
import { addQueueOptions, withQueue } from "./connection.ts";

interface DropMonthFlags extends HandFlags {
  readonly pastRetention?: true;
  readonly archiveTo?: string;
  readonly force?: true;
}

export function dropMonthCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addHandOptions(new Command("drop-month")))
    .description("drop the tables of a month that is over, unless a group still needs it")
    .argument("<topic>", "the topic")
    .argument("[month]", "year and month, such as 202601", wholeNumber(202_001, 208_912))
    .option("--past-retention", "every month past the topic's retention, instead of one")
    .option("--archive-to <folder>", "write it there first, as NDJSON with gzip")
    .option("--force", "also when a group still needs it: its unread messages are lost to that group")
    .addHelpText(
      "after",
      `
Exit code 1: a month past its retention is still there.

Examples:
  rowpost queue drop-month orders 202601 --archive-to /archive --reason "no room" --database sqlite:./app.db
  rowpost queue drop-month orders --past-retention --database mysql://app@127.0.0.1/shop`,
    )
    .action(async (topic: string, month: number | undefined, flags: DropMonthFlags) => {
      const { archiveTo, force } = flags;
      if ((month === undefined) === (flags.pastRetention === undefined)) {
        throw new InputError("give the month behind the topic, or --past-retention");
      }
      if (month === undefined) {
        const outcomes = await withQueue(context, flags, (queue) =>
          queue.applyRetention({ topic, ...(archiveTo === undefined ? {} : { archiveTo }) }),
        );
        if (flags.json === true) printJson(context, outcomes);
        else {
          if (outcomes.length === 0) printLine(context, "no month is past the retention");
          for (const { month: each, problem } of outcomes) printLine(context, problem ?? `dropped ${each}`);
        }
        finish(outcomes.some(({ dropped }) => dropped === undefined) ? 1 : 0);
        return;
      }
      const by = handOf(context, flags);
      const done = await withQueue(context, flags, (queue) =>
        queue.dropMonth({ topic, month, ...by, force: force === true, archiveTo }),
      );
      if (flags.json === true) printJson(context, done);
      else {
        printLine(
          context,
          `dropped ${month}: ${countText(done.messages, "message")}, ${countText(done.records, "record")}, ${done.redeliveries} redeliveries and dead letters`,
        );
        for (const file of done.archive) printLine(context, `archived to ${file}`);
      }
      finish(0);
    });
}
