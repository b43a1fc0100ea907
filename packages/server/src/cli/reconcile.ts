import { Command, Option } from "commander";
import type { Database } from "rowpost";
import { type ReconcileOptions, reconcile } from "rowpost/admin";
import { checkSqliteFile, explainDatabaseError, openDatabase, parseDatabaseUrl } from "../database-url.ts";
import { duration, InputError, instant, listOf } from "./arguments.ts";
import { addConnectionOptions, type ConnectionFlags, withDatabase } from "./connection.ts";
import { type CommandContext, type ExitCode, keepSecret } from "./context.ts";
import { createFindingsOutput, FORMATS, type Format } from "./findings.ts";
import { contentOf } from "./input-file.ts";
import { createProgress } from "./output.ts";

interface ReconcileFlags extends ConnectionFlags {
  readonly businessQuery?: string;
  readonly type?: readonly string[];
  readonly from?: string;
  readonly to?: string;
  readonly timeZone?: string;
  readonly slack?: number;
  readonly keptFor?: number;
  readonly inbox?: string | true;
  readonly consumer?: string;
  readonly effectsQuery?: string;
  readonly consumerDatabase?: string;
  readonly format?: Format;
}

export function reconcileCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addReconcileOptions(addConnectionOptions(new Command("reconcile")))
    .description("compare business rows, messages, receipts and what consumers have handled; changes nothing")
    .addHelpText(
      "after",
      `
A query is one SELECT of yours that returns message_key, and message_type where --type names several;
:from and :to in it are the window. @FILE reads it from a file. It runs in a transaction that can
only read, the business query in the same one as the messages.

Exit codes: 0 nothing found, 3 something found, 1 nothing found but not all of it could be compared.

Examples:
  rowpost reconcile --type order.paid --business-query 'SELECT order_no AS message_key FROM orders WHERE paid_at >= :from AND paid_at < :to' --database mysql://app@127.0.0.1/shop
  rowpost reconcile --type order.paid --business-query @paid.sql --from 2026-11-21 --to 2026-11-22 --format csv --database postgres://app@127.0.0.1/shop
  rowpost reconcile --inbox --effects-query 'SELECT order_id AS message_key FROM points' --type order.paid --consumer-database postgres://points@127.0.0.1/points --database mysql://app@127.0.0.1/shop`,
    )
    .action(async (flags: ReconcileFlags) => finish(await run(context, flags)));
}

function addReconcileOptions(command: Command): Command {
  return command
    .option("--business-query <sql>", "the business rows that must have a message")
    .option("--type <types>", "message types, several with commas; needed with --business-query", listOf(String))
    .option(
      "--from <instant>",
      "beginning of the window: 2026-11-21T08:00:00Z, a day, or how long ago (25h); default: a day before its end",
      (text) => instant(text),
    )
    .option("--to <instant>", "its end; default: 10 minutes ago, or --slack", (text) => instant(text))
    .option(
      "--time-zone <zone>",
      "of the wall clock that :from and :to are compared with, such as Asia/Shanghai; default: the table's own clock",
    )
    .option("--slack <duration>", "how far the times of a row and its message may be apart (default: 10m)", duration)
    .option(
      "--kept-for <duration>",
      "how long finished messages are kept, archive included; 0: not at all; default: told by the oldest one",
      duration,
    )
    .option("--inbox [table]", "look up what consumers have handled (default: message_inbox)")
    .option("--consumer <name>", "with --inbox: only what this consumer has handled")
    .option("--effects-query <sql>", "the effects of a consumer: a key that comes twice was consumed twice")
    .addOption(
      new Option("--consumer-database <url>", "where inbox and effects are; default: --database").env(
        "ROWPOST_CONSUMER_DATABASE_URL",
      ),
    )
    .addOption(new Option("--format <format>", "how findings are printed (default: table)").choices(FORMATS));
}

async function run(context: CommandContext, flags: ReconcileFlags): Promise<ExitCode> {
  if (flags.consumer !== undefined && flags.inbox === undefined) throw new InputError("--consumer goes with --inbox");
  if (flags.json === true && flags.format !== undefined && flags.format !== "json") {
    throw new InputError(`--json and --format ${flags.format} do not go together`);
  }
  const options = await optionsOf(flags);
  const output = createFindingsOutput(context, flags.json === true ? "json" : (flags.format ?? "table"));
  const progress = createProgress(context);
  const report = await withDatabase(context, flags, { mayCreateFile: false }, ({ database, layout }) =>
    withConsumerDatabase(context, flags, async (consumers) => {
      try {
        return await reconcile({
          ...options,
          database,
          layout,
          inbox: options.inbox && { ...options.inbox, database: consumers },
          effects: options.effects && { ...options.effects, database: consumers },
          onFinding(finding) {
            progress.end();
            output.add(finding);
          },
          onProgress({ businessRows, handlings, messages }) {
            progress.show(`${businessRows} business rows, ${messages} messages, ${handlings} rows of the inbox …`);
          },
        });
      } finally {
        progress.end();
      }
    }),
  );
  output.end(report);
  if (report.findings > 0) return 3;
  return report.complete ? 0 : 1;
}

async function optionsOf(flags: ReconcileFlags): Promise<Omit<ReconcileOptions, "database" | "onFinding">> {
  const { businessQuery, consumer, effectsQuery, from, inbox, keptFor, slack, timeZone, to, type } = flags;
  const effects = await queryOf(effectsQuery);
  const [table, schema, ...rest] = typeof inbox === "string" ? inbox.split(".").reverse() : [];
  if (rest.length > 0) throw new InputError(`--inbox ${String(inbox)} has too many dots; expected NAME or SCHEMA.NAME`);
  return {
    types: type,
    timeZone,
    slackMs: slack,
    keptForMs: keptFor,
    businessQuery: await queryOf(businessQuery),
    from: from === undefined ? undefined : new Date(from),
    to: to === undefined ? undefined : new Date(to),
    inbox: inbox === undefined ? undefined : { table, schema, consumer },
    effects: effects === undefined ? undefined : { query: effects },
  };
}

/** A query, or the content of the file that `@FILE` names. */
async function queryOf(text: string | undefined): Promise<string | undefined> {
  return text?.startsWith("@") === true ? await contentOf(text.slice(1)) : text;
}

async function withConsumerDatabase<Result>(
  context: CommandContext,
  { consumerDatabase }: ReconcileFlags,
  work: (database: Database | undefined) => Promise<Result>,
): Promise<Result> {
  if (consumerDatabase === undefined) return await work(undefined);
  const address = parseDatabaseUrl(consumerDatabase, context.environment);
  keepSecret(context, address.password);
  checkSqliteFile(address, false);
  const database = await openDatabase(address);
  try {
    // Later errors may concern either of the two databases.
    const session = await database.connect({ purpose: "tool" }).catch((error: unknown) => {
      throw explainDatabaseError(error, address);
    });
    await session.close();
    return await work(database);
  } finally {
    await database.close();
  }
}

export const RECONCILE_CHINESE: Readonly<Record<string, string>> = {
  "compare business rows, messages, receipts and what consumers have handled; changes nothing":
    "核对业务数据、消息、回执和消费者处理过的消息；不改动任何数据",
  "the business rows that must have a message": "必须有消息的业务数据",
  "message types, several with commas; needed with --business-query":
    "消息类型，多个用逗号分隔；与 --business-query 一起使用时必须给出",
  "beginning of the window: 2026-11-21T08:00:00Z, a day, or how long ago (25h); default: a day before its end":
    "时间范围的开始：2026-11-21T08:00:00Z、某一天，或多久以前（25h）；默认为结束前一天",
  "its end; default: 10 minutes ago, or --slack": "时间范围的结束；默认为 10 分钟前，或 --slack 之前",
  "of the wall clock that :from and :to are compared with, such as Asia/Shanghai; default: the table's own clock":
    "与 :from、:to 比较的列用的是哪个时区的时间，例如 Asia/Shanghai；默认与消息表的时钟相同",
  "how far the times of a row and its message may be apart (default: 10m)":
    "业务数据与它的消息时间最多相差多少（默认 10m）",
  "how long finished messages are kept, archive included; 0: not at all; default: told by the oldest one":
    "完成的消息保留多久，归档也算在内；0 表示不保留；默认由最早的一条推断",
  "look up what consumers have handled (default: message_inbox)": "核对消费者处理过的消息（默认表 message_inbox）",
  "with --inbox: only what this consumer has handled": "与 --inbox 一起：只看这个消费者处理过的",
  "the effects of a consumer: a key that comes twice was consumed twice":
    "消费者产生的业务结果：同一个键出现两次，就是重复消费",
  "where inbox and effects are; default: --database": "消费去重表和业务结果所在的数据库；默认为 --database",
  "how findings are printed (default: table)": "结果的输出格式（默认 table）",
  "A query is one SELECT of yours that returns message_key, and message_type where --type names several;":
    "查询是你自己写的一条 SELECT，返回 message_key；--type 有多个时还要返回 message_type。",
  ":from and :to in it are the window. @FILE reads it from a file. It runs in a transaction that can":
    "其中的 :from 和 :to 是时间范围。@文件 表示从文件读取。查询在只读事务里执行，",
  "only read, the business query in the same one as the messages.": "业务查询与读取消息在同一个事务里。",
  "Exit codes: 0 nothing found, 3 something found, 1 nothing found but not all of it could be compared.":
    "退出码：0 没有发现问题；3 有发现；1 没有发现，但有一部分无法核对。",
};
