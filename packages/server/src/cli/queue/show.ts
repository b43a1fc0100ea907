import { Command } from "commander";
import type { QueueMessageDetail } from "rowpost/queue";
import { CommandFailure } from "../../failure.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { fieldsText, printJson, printLine, tableText, withoutControls } from "../output.ts";
import { addHandOptions, type HandFlags, handOf, queueId } from "./by-hand.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

export function showCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("show"))
    .description("show a message with its body: who consumed it, when, from where, at which attempt")
    .argument("<topic>", "the topic")
    .argument("<id>", "the message")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue show orders 912345678901234567 --database sqlite:./app.db
  rowpost queue show orders 912345678901234567 --json --database mysql://app@127.0.0.1/shop`,
    )
    .action(async (topic: string, id: string, flags: QueueFlags) => {
      const message = await withQueue(context, flags, (queue) => queue.message(topic, id));
      print(context, flags, found(message, topic, id));
      finish(0);
    });
}

export function recallCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(addHandOptions(new Command("recall")))
    .description("take a message back: consumer groups that have not begun with it skip it; then show it")
    .argument("<topic>", "the topic")
    .argument("<id>", "id of the message", queueId)
    .addHelpText(
      "after",
      `
A group that stands as unread or waiting skips it, unless a member has it in hand: show it again later.

Examples:
  rowpost queue recall orders 912345678901234567 --reason "wrong price" --database sqlite:./app.db`,
    )
    .action(async (topic: string, id: string, flags: HandFlags) => {
      const by = handOf(context, flags);
      const recalled = await withQueue(context, flags, (queue) => queue.recall({ topic, id, ...by }));
      print(context, flags, found(recalled, topic, id));
      finish(0);
    });
}

function found(message: QueueMessageDetail | undefined, topic: string, id: string): QueueMessageDetail {
  if (message === undefined) throw new CommandFailure(`topic ${topic} has no message ${id}`);
  return message;
}

/** JSON needs bytes as base64. */
function shown(body: unknown): unknown {
  return body instanceof Uint8Array ? Buffer.from(body).toString("base64") : body;
}

function print(context: CommandContext, { json }: QueueFlags, message: QueueMessageDetail): void {
  if (json === true) printJson(context, { ...message, body: shown(message.body) });
  else printFields(context, message);
}

function printFields(context: CommandContext, message: QueueMessageDetail): void {
  const { producer } = message;
  const fields: [string, string][] = [
    ["id", message.id],
    ["topic", `${message.topic}, partition ${message.partition}`],
    ["type", message.type ?? ""],
    ["key", message.key ?? ""],
    ["ordering key", message.orderingKey ?? ""],
    ["sent at", message.sentAt.toISOString()],
    ["deliver at", message.deliverAt?.toISOString() ?? ""],
    ["producer", [producer.group, producer.ip, producer.port].filter((part) => part !== undefined).join(" ")],
    ["headers", Object.keys(message.headers ?? {}).length === 0 ? "" : JSON.stringify(message.headers)],
    ["problem", message.problem ?? ""],
    ["body", withoutControls(message.bodyText)],
  ];
  printLine(
    context,
    fieldsText(
      context,
      fields.filter(([, value]) => value !== ""),
    ),
  );
  if (message.groups.length > 0) {
    const rows = message.groups.map(({ group, state, failReason }) => [
      group,
      state,
      withoutControls(failReason ?? ""),
    ]);
    printLine(
      context,
      `\n${tableText(context, [{ title: "GROUP" }, { title: "STATE" }, { title: "LAST ERROR" }], rows)}`,
    );
  }
  if (message.attempts.length === 0) return;
  const titles = ["GROUP", "ROUND", "ATTEMPT", "RESULT", "AT", "MS", "FROM", "ERROR"].map((title) => ({ title }));
  const rows = message.attempts.map(
    ({ group, round, attempt, result, at, durationMs, ip, port, instance, error, batch }) => [
      group,
      String(round),
      String(attempt),
      batch === undefined ? result : `${result}, in a batch of ${batch.messages}`,
      at.toISOString(),
      String(durationMs),
      `${ip ?? "?"}${port === undefined ? "" : `:${port}`} ${instance}`,
      withoutControls(error ?? ""),
    ],
  );
  printLine(context, `\n${tableText(context, titles, rows)}`);
}
