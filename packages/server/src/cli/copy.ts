/** `rowpost copy`: sends a changed copy of a message. */
import { Command, Option } from "commander";
import type { CopyChange, CopyReport, CopyRequest } from "rowpost/admin";
import { CommandFailure } from "../failure.ts";
import { headerOption, InputError, messageId } from "./arguments.ts";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { type ActionFlags, actionOf, addActionOptions } from "./filter.ts";
import { contentOf } from "./input-file.ts";
import { printJson, printLine } from "./output.ts";

interface CopyFlags extends ConnectionFlags, ActionFlags {
  readonly newKey: string;
  readonly topic?: string;
  readonly body?: string;
  readonly file?: string;
  readonly header?: Readonly<Record<string, string>>;
  readonly original: CopyRequest["original"];
}

export function copyCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addActionOptions(addConnectionOptions(new Command("copy")))
    .description("send a new message that is like an old one but for what is changed")
    .argument("<id>", "id of the old message, which may be in the archive", messageId)
    .requiredOption("--new-key <key>", "key of the new message: consumers know a message by its type and key")
    .option("--topic <topic>", "another topic")
    .option("--body <text>", "another body, as it is stored: JSON, text, or base64 of a binary one")
    .option("--file <path>", "read the body from a file; - is standard input")
    .option(
      "--header <name=value>",
      "a header; may be given several times, and replaces all of the old ones",
      headerOption,
    )
    .addOption(
      new Option("--original <fate>", "what becomes of the old message: keep, suspend or archive")
        .choices(["keep", "suspend", "archive"])
        .default("keep"),
    )
    .addHelpText(
      "after",
      `
Examples:
  rowpost copy 4711 --new-key 20261121-0042~2 --body '{"total":12}' --original suspend --reason "wrong total" --database sqlite:./app.db
  rowpost copy 4711 --new-key 20261121-0042~2 --topic refunds --reason "ticket 7" --database mysql://app@127.0.0.1/shop`,
    )
    .action(async (id: string, flags: CopyFlags) => {
      const { original } = flags;
      const [action, change] = [actionOf(context, flags), await changeOf(flags)];
      let blocks = false;
      const { conflicts, copyId } = await withAdmin(context, flags, async (admin): Promise<CopyReport> => {
        const message = await admin.show({ id });
        if (message === undefined) throw new CommandFailure(`there is no message with id ${id}`);
        const seen = { id, lockVersion: message.lockVersion ?? "0" };
        const isOpen = !message.archived && message.state !== "sent" && message.state !== "consumed";
        blocks = isOpen && typeof message.orderingKey === "string" && original !== "archive";
        return await admin.copy({ seen, change, original, action });
      });
      if (copyId === undefined) throw new CommandFailure(refusal(id, original, conflicts));
      if (flags.json === true) printJson(context, { copyId, original: { id, fate: original } });
      else printLine(context, `message ${copyId} waits to be sent; ${id} ${FATES[original]}`);
      if (blocks && flags.json !== true)
        printLine(context, `it waits behind ${id}, which has its ordering key: send or archive that one`);
      finish(0);
    });
}

const FATES = { keep: "stays as it is", suspend: "is suspended", archive: "is in the archive" } as const;

async function changeOf({ body, file, header, newKey, topic }: CopyFlags): Promise<CopyChange> {
  if (body !== undefined && file !== undefined)
    throw new InputError("--body and --file say the same thing; give one of them");
  const text = file === undefined ? body : (await contentOf(file)).replace(/\r?\n$/, "");
  return { key: newKey, topic, body: text, headers: header };
}

function refusal(id: string, original: CopyRequest["original"], conflicts: CopyReport["conflicts"]): string {
  const [conflict] = conflicts;
  if (conflict === undefined)
    return `nothing was copied: ${id} is not there any more, is delayed, or is archived, where --original has to be keep`;
  return `nothing was copied: ${id} is ${conflict.state}, which forbids --original ${original}, or it has changed meanwhile`;
}

export const COPY_CHINESE: Readonly<Record<string, string>> = {
  "send a new message that is like an old one but for what is changed": "改动一条旧消息的部分内容，作为新消息发送",
  "id of the old message, which may be in the archive": "旧消息的 id，也可以在归档表里",
  "key of the new message: consumers know a message by its type and key":
    "新消息的业务键：消费者按类型和业务键识别消息",
  "another topic": "另一个主题",
  "another body, as it is stored: JSON, text, or base64 of a binary one":
    "另一个消息体，按存储的形式：JSON、文本，或二进制的 base64",
  "a header; may be given several times, and replaces all of the old ones":
    "消息头；可以写多次，会替换旧消息的全部消息头",
  "what becomes of the old message: keep, suspend or archive":
    "旧消息怎么处理：keep 保持不变，suspend 挂起，archive 归档",
};
