/** `rowpost queue show`: one message, and who consumed it. */
import { Command } from "commander";
import type { QueueMessageDetail } from "rowpost/queue";
import type { CommandContext, ExitCode } from "../context.ts";
import { CommandFailure } from "../failure.ts";
import { fieldsText, printJson, printLine, tableText, withoutControls } from "../output.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

/** The command; `finish` takes its exit code. */
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
      if (message === undefined) throw new CommandFailure(`topic ${topic} has no message ${id}`);
      if (flags.json === true) printJson(context, { ...message, body: shown(message.body) });
      else print(context, message);
      finish(0);
    });
}

/** Bytes as base64: JSON has no other way. */
function shown(body: unknown): unknown {
  return body instanceof Uint8Array ? Buffer.from(body).toString("base64") : body;
}

function print(context: CommandContext, message: QueueMessageDetail): void {
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
