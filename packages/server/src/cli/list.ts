import { Command, Option } from "commander";
import type { MessageAdmin, MessagePage, MessageSummary } from "rowpost/admin";
import { duration } from "./arguments.ts";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { addFilterOptions, type FilterFlags, filterOf } from "./filter.ts";
import { printJson, printLine, shortened, stateText, tableText } from "./output.ts";

interface ListFlags extends ConnectionFlags, FilterFlags {
  readonly archived?: true;
  readonly timeLimit: number;
}

const DEFAULT_LIMIT = 50;
const PAGE_SIZE = 1_000;

export function listCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addFilterOptions(addConnectionOptions(new Command("list")))
    .description(`list messages, the newest first (default: ${DEFAULT_LIMIT})`)
    .option("--archived", "look into the archive")
    .addOption(
      new Option(
        "--time-limit <duration>",
        "how long to look for messages that no index leads to; exit code 1 when it was not enough",
      )
        .argParser(duration)
        .default(10_000, "10s"),
    )
    .addHelpText(
      "after",
      `
Examples:
  rowpost list --database sqlite:./app.db --state failed
  rowpost list --database mysql://app@127.0.0.1/shop --topic orders --after 2h --limit 200
  rowpost list --database mysql://app@127.0.0.1/shop --reason-contains TOPIC_NOT_FOUND --json`,
    )
    .action(async (flags: ListFlags) => {
      const found = await withAdmin(context, flags, (admin) => readPages(admin, flags));
      if (flags.json === true) printJson(context, found.messages);
      else printMessages(context, found, flags.limit ?? DEFAULT_LIMIT);
      if (found.timeIsUp) {
        context.stderr.write(
          `rowpost: the time was over at id ${found.nextBeforeId ?? ""}; older messages were not looked at (--time-limit, --before)\n`,
        );
      }
      finish(found.timeIsUp ? 1 : 0);
    });
}

async function readPages(admin: MessageAdmin, flags: ListFlags): Promise<MessagePage> {
  const filter = filterOf(flags);
  const limit = flags.limit ?? DEFAULT_LIMIT;
  const messages: MessageSummary[] = [];
  const untilMs = performance.now() + flags.timeLimit;
  let page: MessagePage;
  let beforeId: string | undefined;
  do {
    page = await admin.list({
      filter,
      beforeId,
      archived: flags.archived === true,
      limit: Math.min(PAGE_SIZE, limit - messages.length),
      timeLimitMs: Math.max(0, untilMs - performance.now()),
    });
    messages.push(...page.messages);
    beforeId = page.nextBeforeId;
  } while (beforeId !== undefined && !page.timeIsUp && messages.length < limit);
  return { ...page, messages };
}

function printMessages(context: CommandContext, { messages, nextBeforeId }: MessagePage, limit: number): void {
  if (messages.length === 0) {
    printLine(context, nextBeforeId === undefined ? "no message matches" : "no message matches so far");
    return;
  }
  const columns = ["ID", "TYPE", "KEY", "TOPIC", "ORDERING KEY", "STATE", "RETRIES", "NEXT", "CREATED", "REASON"].map(
    (title) => ({
      title,
      ...(title === "ID" || title === "RETRIES" ? { align: "right" as const } : {}),
    }),
  );
  const rows = messages.map((message) => [
    message.id,
    message.type,
    message.key,
    message.topic,
    message.orderingKey ?? "",
    message.state === "unknown" ? `unknown (${message.rawState})` : stateText(context, message.state),
    String(message.retryCount),
    message.nextRetryAt ?? "",
    message.gmtCreate,
    shortened(message.failReason ?? "", 60),
  ]);
  printLine(context, tableText(context, columns, rows));
  if (messages.length === limit && nextBeforeId !== undefined)
    printLine(context, `the newest ${limit}; --limit shows more, a filter less`);
}
