/** `rowpost queue tail`: shows new messages of a topic until Ctrl-C. */
import { Command, Option } from "commander";
import type { TailedMessage, TailOptions } from "rowpost/queue";
import { watchSignals } from "../../signals.ts";
import { instant, wholeNumber } from "../arguments.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { printLine, shortened, withoutControls } from "../output.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

interface TailFlags extends QueueFlags {
  readonly from: NonNullable<TailOptions["from"]>;
  readonly limit?: number;
}

export function tailCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("tail"))
    .description("show what is appended to a topic, until Ctrl-C; no group is needed, and nobody's progress moves")
    .argument("<topic>", "the topic")
    .addOption(
      new Option("--from <place>", "start, end, an id, an instant (2026-11-21T08:00:00Z), or how long ago (2h)")
        .argParser(placeOf)
        .default("end"),
    )
    .option("--limit <n>", "end after this many messages", wholeNumber(1, 1_000_000_000))
    .addHelpText(
      "after",
      `
With --json each message is one line.

Examples:
  rowpost queue tail orders --database sqlite:./app.db
  rowpost queue tail orders --from 2h --database mysql://app@127.0.0.1/shop
  rowpost queue tail orders --from start --limit 100 --json --database sqlite:./app.db`,
    )
    .action(async (topic: string, flags: TailFlags) => {
      const watch = watchSignals(() => undefined);
      try {
        await withQueue(context, flags, async (queue) => {
          const { from, limit } = flags;
          for await (const message of queue.tail({ topic, from, limit, signal: watch.signal })) {
            printLine(context, flags.json === true ? JSON.stringify(shownAs(message)) : lineOf(message));
          }
        });
      } finally {
        watch.end();
        context.endSoon?.();
      }
      finish(0);
    });
}

function placeOf(text: string): NonNullable<TailOptions["from"]> {
  if (text === "start" || text === "end") return text;
  return /^\d+$/.test(text) ? { id: text } : { at: new Date(instant(text)) };
}

/** JSON needs bytes as base64. */
function shownAs(message: TailedMessage): object {
  const { body } = message;
  return { ...message, body: body instanceof Uint8Array ? Buffer.from(body).toString("base64") : body };
}

function lineOf({ id, partition, key, type, body, sentAt, orderingKey, broken }: TailedMessage): string {
  const text =
    body instanceof Uint8Array ? `${body.length} bytes` : typeof body === "string" ? body : JSON.stringify(body);
  const parts = [
    id,
    `p${partition}`,
    sentAt.toISOString(),
    ...(type === undefined ? [] : [type]),
    ...(key === undefined ? [] : [`key=${key}`]),
    ...(orderingKey === undefined ? [] : [`order=${orderingKey}`]),
    ...(broken === undefined ? [] : [`(broken: ${broken})`]),
    shortened(text, 400),
  ];
  return withoutControls(parts.join(" "));
}
