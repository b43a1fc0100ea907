/** `rowpost queue rewind`: moves a group back to get messages again, or forward. */
import { Command } from "commander";
import type { RewindPosition, RewindReport } from "rowpost/queue";
import { InputError, instant } from "../arguments.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { countText, printJson, printLine } from "../output.ts";
import { addHandOptions, type HandFlags, handOf } from "./by-hand.ts";
import { addQueueOptions, withQueue } from "./connection.ts";

interface RewindFlags extends HandFlags {
  readonly to?: string;
  readonly undo?: true;
  readonly dryRun?: true;
  readonly skipDropped?: true;
}

export function rewindCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addHandOptions(new Command("rewind")))
    .description("move a consumer group back, so that messages come again, or ahead; its consumers may run")
    .argument("<topic>", "the topic")
    .argument("<group>", "the consumer group")
    .option(
      "--to <place>",
      "start, end, an id, an instant or how long ago (2h), -N (so many messages back), or group:NAME",
    )
    .option("--undo", "take the last rewind of the group back")
    .option("--dry-run", "change nothing, and count what would come again")
    .option("--skip-dropped", "begin behind dropped months instead of being refused")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue rewind orders billing --to 2h --dry-run --database sqlite:./app.db
  rowpost queue rewind orders billing --to 2h --reason "invoices were wrong" --database sqlite:./app.db
  rowpost queue rewind orders billing --undo --reason "the wrong group" --database sqlite:./app.db`,
    )
    .action(async (topic: string, group: string, flags: RewindFlags) => {
      if ((flags.to === undefined) === (flags.undo === undefined)) throw new InputError("give --to PLACE, or --undo");
      const dryRun = flags.dryRun === true;
      const options = { topic, group, dryRun, ...handOf(context, flags, dryRun ? "dry run" : undefined) };
      const to = flags.to === undefined ? undefined : placeOf(flags.to);
      const report = await withQueue(context, flags, (queue) =>
        to === undefined
          ? queue.undoRewind(options)
          : queue.rewind({ ...options, to, droppedMonths: flags.skipDropped === true ? "skip" : "refuse" }),
      );
      if (flags.json === true) printJson(context, report);
      else for (const line of reportText(report)) printLine(context, line);
      finish(0);
    });
}

function placeOf(text: string): RewindPosition {
  if (text === "start" || text === "end") return text;
  if (/^\d+$/.test(text)) return { id: text };
  if (/^-\d{1,9}$/.test(text)) return { back: Number(text.slice(1)) };
  if (text.startsWith("group:")) return { group: text.slice("group:".length) };
  return { time: new Date(instant(text)) };
}

function reportText({
  dryRun,
  rewind,
  partitions,
  messages,
  consumed,
  droppedMonths,
  setAside,
  restored,
}: RewindReport): string[] {
  const moves = partitions.map(({ partition, from, to, messages: count }) => {
    const words = BigInt(to) < BigInt(from) ? "back" : "ahead";
    return `partition ${partition}: ${words} from ${from} to ${to}${count === undefined ? "" : `, ${countText(count, "message")}`}`;
  });
  const dropped = droppedMonths.length === 0 ? [] : [`dropped months are left out: ${droppedMonths.join(", ")}`];
  if (partitions.length === 0) return ["the group is there already"];
  if (dryRun) {
    return [
      ...moves,
      ...dropped,
      `nothing was changed; ${countText(messages ?? 0, "message")} in between, ${consumed ?? 0} of them consumed already`,
    ];
  }
  return [
    ...moves,
    ...dropped,
    `rewind ${rewind ?? ""}; ${setAside} redeliveries and dead letters set aside, ${restored} there again`,
  ];
}
