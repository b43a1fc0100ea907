import { Command } from "commander";
import { InputError, listOf } from "../arguments.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { printJson, printLine } from "../output.ts";
import { addHandOptions, type HandFlags, handOf, printReport, queueId } from "./by-hand.ts";
import { addQueueOptions, withQueue } from "./connection.ts";
import { addDeadFilter, type DeadFilterFlags } from "./dead.ts";

interface Chosen {
  readonly id?: readonly string[];
  readonly all?: true;
  readonly error?: string;
}

function addChoice(command: Command): Command {
  return command
    .option("--id <ids>", "ids, several with commas", listOf(queueId))
    .option("--all", "all that match --error, or all there are");
}

function chosen({ id, all, error }: Chosen): { ids?: readonly string[]; all?: true; error?: string } {
  if ((id === undefined) === (all !== true)) throw new InputError("which messages? Give --id, or --all");
  return { ...(id === undefined ? { all: true } : { ids: id }), ...(error === undefined ? {} : { error }) };
}

export function redeliverCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addHandOptions(addDeadFilter(addChoice(new Command("redeliver")))))
    .description("deliver dead letters of a consumer group again, with all their attempts; what waits anyway, at once")
    .argument("<topic>", "the topic")
    .argument("<group>", "the consumer group")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue redeliver orders billing --id 912534914363031552 --database sqlite:./app.db
  rowpost queue redeliver orders billing --all --error "no such customer" --reason "customers are back" --database mysql://app@127.0.0.1/shop`,
    )
    .action(async (topic: string, group: string, flags: DeadFilterFlags & HandFlags & Chosen) => {
      const which = chosen(flags);
      const { state } = flags;
      const by = handOf(context, flags, "redelivered by hand");
      const report = await withQueue(context, flags, (queue) =>
        queue.redeliver({ topic, group, state, ...by, ...which }),
      );
      finish(printReport(context, report, { verb: "redelivered", json: flags.json === true }));
    });
}

export function discardCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addHandOptions(addChoice(new Command("discard"))))
    .description("give dead letters of a consumer group up for good; a record says who did it")
    .argument("<topic>", "the topic")
    .argument("<group>", "the consumer group")
    .option("--error <text>", "part of the last error")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue discard orders billing --id 912534914363031552 --reason "order was canceled" --database sqlite:./app.db`,
    )
    .action(async (topic: string, group: string, flags: HandFlags & Chosen) => {
      const which = chosen(flags);
      const by = handOf(context, flags, "discarded by hand");
      const report = await withQueue(context, flags, (queue) => queue.discard({ topic, group, ...by, ...which }));
      finish(printReport(context, report, { verb: "discarded", json: flags.json === true }));
    });
}

export function editCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addHandOptions(new Command("edit")))
    .description("append a changed copy of a dead letter for its consumer group alone, and discard the old one")
    .argument("<topic>", "the topic")
    .argument("<group>", "the consumer group")
    .argument("<id>", "id of the message", queueId)
    .requiredOption("--body <json>", "body of the copy: JSON")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue edit orders billing 912534914363031552 --body '{"total":12}' --database sqlite:./app.db`,
    )
    .action(async (topic: string, group: string, id: string, flags: HandFlags & { readonly body: string }) => {
      const by = handOf(context, flags, "edited by hand");
      const change = { body: flags.body, jsonText: true };
      const copy = await withQueue(context, flags, (queue) =>
        queue.editDeadLetter({ topic, group, id, change, ...by }),
      );
      if (flags.json === true) printJson(context, { topic, group, discarded: id, copy });
      else printLine(context, `appended ${copy} for ${group}, and discarded ${id}`);
      finish(0);
    });
}
