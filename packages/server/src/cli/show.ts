import { Command } from "commander";
import type { ChangeByHand, Explanation, StoredMessage } from "rowpost/admin";
import { CommandFailure } from "../failure.ts";
import { InputError, messageId } from "./arguments.ts";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { fieldsText, printJson, printLine, stateText } from "./output.ts";

interface ShowFlags extends ConnectionFlags {
  readonly id?: string;
  readonly type?: string;
  readonly key?: string;
}

export function showCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addConnectionOptions(new Command("show"))
    .argument("[id]", "id of the message", messageId)
    .description("show everything about one message, by its id or by its type and key; `why` names what holds it")
    .option("--id <id>", "id of the message", messageId)
    .option("--type <type>", "message type, together with --key")
    .option("--key <key>", "message key, together with --type")
    .addHelpText(
      "after",
      `
Examples:
  rowpost show 4711 --database sqlite:./app.db
  rowpost show --type order.created --key 20261121-0042 --database mysql://app@127.0.0.1/shop --json`,
    )
    .action(async (id: string | undefined, flags: ShowFlags) => {
      const identity = identityOf(id, flags);
      const found = await withAdmin(context, flags, async (admin) => {
        const message = await admin.show(identity);
        return message && { message, why: await admin.explain(message), changes: await admin.changes(message.id) };
      });
      if (found === undefined) {
        const what = "id" in identity ? `id ${identity.id}` : `type ${identity.type} and key ${identity.key}`;
        throw new CommandFailure(`there is no message with ${what}`);
      }
      const { changes, message, why } = found;
      if (flags.json === true) printJson(context, { ...message, why, changes });
      else printLine(context, messageText(context, found));
      finish(0);
    });
}

function identityOf(
  argument: string | undefined,
  flags: ShowFlags,
): { readonly id: string } | { readonly type: string; readonly key: string } {
  const id = argument ?? flags.id;
  const byKey = flags.type !== undefined || flags.key !== undefined;
  if (id !== undefined && !byKey) return { id };
  if (id === undefined && flags.type !== undefined && flags.key !== undefined)
    return { type: flags.type, key: flags.key };
  throw new InputError("which message? Give its id, or --type and --key");
}

interface Found {
  readonly message: StoredMessage;
  readonly why: Explanation;
  readonly changes: readonly ChangeByHand[];
}

/** Omits fields missing in the layout; empty ones are shown as -. */
function messageText(context: CommandContext, { changes, message, why }: Found): string {
  const { body, state, rawState, headers, ...rest } = message;
  const fields: [string, string][] = [];
  const put = (name: string, value: string): number => fields.push([name, value === "" ? "-" : harmless(value)]);
  for (const [name, value] of Object.entries(rest)) {
    if (value === undefined) continue;
    put(name, String(value ?? ""));
    if (name !== "topic") continue;
    fields.push(["state", state === "unknown" ? `unknown (${harmless(rawState)})` : stateText(context, state)]);
    put("why", why.text);
  }
  if (changes.length > 0) put("by hand", changes.map(changeText).join("\n"));
  if (headers !== undefined) put("headers", indented(headers ?? ""));
  put("body", indented(body));
  return fieldsText(context, fields);
}

/** `2026-11-22T03:05:00.000Z suspend by ann: wrong amount` */
function changeText({ action, at, author, reason }: ChangeByHand): string {
  return `${at} ${action} by ${author}: ${reason}`;
}

/** Removes control characters, which must not reach the terminal; keeps line breaks. */
function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, " ");
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
