import { Command } from "commander";
import type { QueueMessage } from "rowpost/queue";
import { duration, headerOption, InputError } from "../arguments.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { contentOf } from "../input-file.ts";
import { countText, printJson, printLine } from "../output.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

interface SendFlags extends QueueFlags {
  readonly file?: string;
  readonly lines?: true;
  readonly key?: string;
  readonly type?: string;
  readonly orderingKey?: string;
  readonly header?: Readonly<Record<string, string>>;
  readonly contentType?: string;
  readonly delay?: number;
}

const BATCH = 500;

export function sendCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("send"))
    .description("append a message, or one for each line of a file")
    .argument("<topic>", "the topic")
    .argument("[body]", "JSON; any text with --content-type, such as text/plain")
    .option("--file <path>", "read the body from a file; - is standard input")
    .option("--lines", "with --file: each line that is not empty is a message")
    .option("--key <key>", "business key to search by")
    .option("--type <type>", "message type, such as order.created")
    .option("--ordering-key <key>", "messages with the same one are handled in their order")
    .option("--header <name=value>", "a header; may be given several times", headerOption)
    .option("--content-type <type>", "media type of the body (default: application/json)")
    .option("--delay <duration>", "deliver it only after this time (30s, 2h)", duration)
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue send orders '{"total":12}' --key 4711 --database sqlite:./app.db
  rowpost queue send orders --file orders.ndjson --lines --database mysql://app@127.0.0.1/shop
  echo hello | rowpost queue send notes --file - --content-type text/plain --database sqlite:./app.db`,
    )
    .action(async (topic: string, body: string | undefined, flags: SendFlags) => {
      const messages = (await bodiesOf(body, flags)).map((each) => messageOf(topic, each, flags));
      const ids = await withQueue(
        context,
        flags,
        async (queue) => {
          const all: string[] = [];
          for (let from = 0; from < messages.length; from += BATCH) {
            all.push(...(await queue.append(messages.slice(from, from + BATCH))));
          }
          return all;
        },
        { producerGroup: "rowpost-queue-send" },
      );
      if (flags.json === true) printJson(context, { topic, ids });
      else if (ids.length === 1) printLine(context, String(ids[0]));
      else printLine(context, `appended ${countText(ids.length, "message")}: ${ids[0] ?? ""} to ${ids.at(-1) ?? ""}`);
      finish(0);
    });
}

async function bodiesOf(body: string | undefined, { file, lines }: SendFlags): Promise<string[]> {
  if ((body === undefined) === (file === undefined)) {
    throw new InputError("what is to be sent? Give the body behind the topic, or --file PATH (- is standard input)");
  }
  if (lines === true && file === undefined) throw new InputError("--lines does nothing without --file");
  const text = file === undefined ? (body ?? "") : await contentOf(file);
  if (lines !== true) return [file === undefined ? text : text.replace(/\r?\n$/, "")];
  const bodies = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  if (bodies.length === 0) throw new InputError(`--file ${file} has no line that is not empty`);
  return bodies;
}

function messageOf(topic: string, body: string, flags: SendFlags): QueueMessage {
  const { key, type, orderingKey, header: headers, contentType, delay } = flags;
  return {
    topic,
    body,
    ...(contentType === undefined ? { jsonText: true } : { contentType }),
    ...(key === undefined ? {} : { key }),
    ...(type === undefined ? {} : { type }),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    ...(headers === undefined ? {} : { headers }),
    ...(delay === undefined ? {} : { delayMs: delay }),
  };
}
