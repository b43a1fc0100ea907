/** `rowpost list`: messages that match a filter, the newest first. */
import { Command } from "commander";
import type { MessageAdmin, StoredMessage } from "rowpost";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { addFilterOptions, type FilterFlags, filterOf } from "./filter.ts";
import { printJson, printLine, shortened, stateText, tableText } from "./output.ts";

interface ListFlags extends ConnectionFlags, FilterFlags {
  readonly archived?: true;
}

const DEFAULT_LIMIT = 50;
/** The most that one call of the admin port returns. */
const PAGE_SIZE = 1_000;

/** The command; `finish` takes its exit code. */
export function listCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addFilterOptions(addConnectionOptions(new Command("list")))
    .description(`list messages, the newest first (default: ${DEFAULT_LIMIT})`)
    .option("--archived", "look into the archive")
    .addHelpText(
      "after",
      `
Examples:
  rowpost list --database sqlite:./app.db --state failed
  rowpost list --database mysql://app@127.0.0.1/shop --topic orders --after 2h --limit 200
  rowpost list --database mysql://app@127.0.0.1/shop --reason-contains TOPIC_NOT_FOUND --json`,
    )
    .action(async (flags: ListFlags) => {
      const limit = flags.limit ?? DEFAULT_LIMIT;
      const messages = await withAdmin(context, flags, (admin) => readPages(admin, flags, limit));
      if (flags.json === true) printJson(context, messages);
      else printMessages(context, messages, limit);
      finish(0);
    });
}

async function readPages(admin: MessageAdmin, flags: ListFlags, limit: number): Promise<StoredMessage[]> {
  const filter = filterOf(flags);
  const messages: StoredMessage[] = [];
  while (messages.length < limit) {
    const asked = Math.min(PAGE_SIZE, limit - messages.length);
    const last = messages.at(-1)?.id;
    const page = await admin.list({
      filter,
      limit: asked,
      archived: flags.archived === true,
      ...(last === undefined ? {} : { beforeId: last }),
    });
    messages.push(...page);
    if (page.length < asked) break;
  }
  return messages;
}

function printMessages(context: CommandContext, messages: readonly StoredMessage[], limit: number): void {
  if (messages.length === 0) {
    printLine(context, "no message matches");
    return;
  }
  const columns = ["ID", "TYPE", "KEY", "TOPIC", "STATE", "RETRIES", "NEXT", "CREATED", "REASON"].map((title) => ({
    title,
    ...(title === "ID" || title === "RETRIES" ? { align: "right" as const } : {}),
  }));
  const rows = messages.map((message) => [
    message.id,
    message.type,
    message.key,
    message.topic,
    message.state === "unknown" ? `unknown (${message.rawState})` : stateText(context, message.state),
    String(message.retryCount),
    message.nextRetryAt ?? "",
    message.gmtCreate,
    shortened(message.failReason ?? "", 60),
  ]);
  printLine(context, tableText(context, columns, rows));
  if (messages.length === limit) printLine(context, `the newest ${limit}; --limit shows more, a filter less`);
}
