import { Command } from "commander";
import type { CommandContext, ExitCode } from "../context.ts";
import { printJson, printLine } from "../output.ts";
import { addHandOptions, type HandFlags, handOf, queueId } from "./by-hand.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

export function pauseCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addHandOptions(new Command("pause")))
    .description("let the members of a consumer group take nothing more until it is resumed; they may go on running")
    .argument("<topic>", "the topic")
    .argument("<group>", "the consumer group")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue pause orders billing --reason "wrong prices" --database sqlite:./app.db`,
    )
    .action(async (topic: string, group: string, flags: HandFlags) => {
      const by = handOf(context, flags, "paused by hand");
      const paused = await withQueue(context, flags, (queue) => queue.pause({ topic, group, ...by }));
      if (flags.json === true) printJson(context, { topic, group, paused });
      else printLine(context, paused ? `paused ${group}` : `${group} is paused already`);
      finish(0);
    });
}

export function resumeCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("resume"))
    .description("let a paused consumer group go on where it was")
    .argument("<topic>", "the topic")
    .argument("<group>", "the consumer group")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue resume orders billing --database sqlite:./app.db`,
    )
    .action(async (topic: string, group: string, flags: QueueFlags) => {
      const resumed = await withQueue(context, flags, (queue) => queue.resume({ topic, group }));
      if (flags.json === true) printJson(context, { topic, group, resumed });
      else printLine(context, resumed ? `resumed ${group}` : `${group} is not paused`);
      finish(0);
    });
}

export function skipCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addHandOptions(new Command("skip")))
    .description(
      "let a consumer group never get a message: one that comes again, a dead letter, or its first unfinished one",
    )
    .argument("<topic>", "the topic")
    .argument("<group>", "the consumer group")
    .argument("<id>", "id of the message", queueId)
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue skip orders billing 912534914363031552 --reason "its handler hangs" --database sqlite:./app.db`,
    )
    .action(async (topic: string, group: string, id: string, flags: HandFlags) => {
      const by = handOf(context, flags, "skipped by hand");
      await withQueue(context, flags, (queue) => queue.skip({ topic, group, id, ...by }));
      if (flags.json === true) printJson(context, { topic, group, id, skipped: true });
      else printLine(context, `skipped ${id}`);
      finish(0);
    });
}
