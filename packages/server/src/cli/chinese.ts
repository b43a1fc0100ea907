/** Help in Chinese: a table by the English texts, applied to the finished commands. */
import { type Command, Help } from "commander";
import { ADOPT_CHINESE } from "./adopt.ts";
import { ALERT_CHINESE } from "./alert.ts";
import { COPY_CHINESE } from "./copy.ts";
import { DOCTOR_CHINESE } from "./doctor.ts";
import { QUEUE_CHINESE } from "./queue/chinese.ts";
import { RECONCILE_CHINESE } from "./reconcile.ts";
import { RELAY_SETTINGS_CHINESE } from "./relay-settings.ts";
import { SERVE_CHINESE } from "./serve.ts";

export const CHINESE: Readonly<Record<string, string>> = {
  "Usage:": "用法：",
  "Arguments:": "参数：",
  "Options:": "选项：",
  "Commands:": "命令：",
  "Examples:": "示例：",
  "display help for command": "显示这个命令的帮助",
  "print the version": "显示版本号",
  "show the help of a command": "显示某个命令的帮助",
  "The local message table (本地消息表): relay its messages to a broker, and look after them.":
    "本地消息表：把表里的消息投递到消息中间件，并管理这些消息。",
  "Exit codes: 0 done, 1 it could not be done or not all of it, 2 wrong input, 3 relay --once: some wait, reconcile: some do not add up, doctor: warnings.":
    "退出码：0 完成；1 没有做成或没有全部做成；2 输入有误；3 relay --once：有消息在等待，reconcile：有对不上的，doctor：有警告。",
  ...ADOPT_CHINESE,
  ...ALERT_CHINESE,
  ...COPY_CHINESE,
  ...DOCTOR_CHINESE,
  ...RECONCILE_CHINESE,
  ...SERVE_CHINESE,
  ...RELAY_SETTINGS_CHINESE,
  "a small shop, its relay and a real consumer that often fails; watch nothing get lost":
    "一个小商店、它的 relay，和一个经常失败的真实消费者；看着什么都不会丢",
  "Without --once the console shows the orders while it runs: its link is printed, and works once.":
    "不带 --once 时，运行期间可以在控制台里看这些订单：会打印一个只能用一次的链接。",
  "make or update the message table and the tables beside it; can be run again at any time":
    "创建或更新消息表和它旁边的表；随时可以重复执行",
  "publish what waits in the message table to a broker, until SIGTERM; several relays share the work":
    "把消息表里等待的消息发送到中间件，直到收到 SIGTERM；多个 relay 会分担工作",
  "show how many messages are in which state, which relays run, which brokers are away, and what is suspended":
    "显示各状态的消息数、运行中的 relay、连不上的中间件，以及挂起了什么",
  "for monitoring: print only what is wrong, and end with exit code 1 when something is":
    "供监控使用：只打印有问题的地方；有问题时退出码为 1",
  "with --check: a message may be due for this long": "与 --check 一起：消息到期后最多可以等这么久",
  "with --check: so many may be failed": "与 --check 一起：最多可以有这么多条失败的消息",
  "with --check: a broker may be away for this long": "与 --check 一起：中间件最多可以连不上这么久",
  "with --check: so many relays have to run": "与 --check 一起：至少要有这么多个 relay 在运行",
  "# for monitoring": "# 供监控使用",
  "bring all messages of a topic forward that wait for their next attempt, after an outage":
    "故障之后，把一个主题里等待下一次尝试的消息全部提前",
  "the topic": "主题",
  "They come due in the order of their ids, a thousand a second. Attempts stay counted, and a delay is":
    "它们按 id 的顺序到期，每秒一千条。次数照旧，延迟",
  "not cut short. `rowpost retry --now` does it for messages that you name.":
    "不会缩短。`rowpost retry --now` 只提前你点名的消息。",
  "pending messages that wait for their next attempt too: at once; a delay is not cut short":
    "等待下一次尝试的 pending 消息也立刻到期；延迟不会缩短",
  "serve /metrics, /livez and /readyz at PORT or HOST:PORT (default host: 127.0.0.1); with ROWPOST_CONFIRM_TOKEN also POST /confirmations":
    "在 PORT 或 HOST:PORT 提供 /metrics、/livez 和 /readyz（默认主机 127.0.0.1）；设置了 ROWPOST_CONFIRM_TOKEN 时还有 POST /confirmations",
  "messages of this type are consumed when all of these consumers have confirmed, such as order.paid=billing,stock; may be given several times":
    "这个类型的消息要这些消费者都确认才算已消费，例如 order.paid=billing,stock；可以写多次",
  "read what consumers confirm from this topic (RabbitMQ: this queue; NATS: this stream)":
    "从这个主题（RabbitMQ 是队列，NATS 是 stream）读取消费者的确认",
  "where that topic is (default: the broker of --broker)": "这个主题在哪里（默认：--broker 的中间件）",
  "consumer group that reads it, the same for all relays of the table": "读取它的消费组，同一张表的 relay 都一样",
  "say that a message is consumed, or with --error that its consumer has given it up":
    "确认一条消息已消费；加上 --error 则表示消费者放弃了它",
  "message type": "消息类型",
  "message key": "消息的业务键",
  "who reports; needed for a type of --consumers": "由谁报告；类型写在 --consumers 里时必须给出",
  "why it could not be handled; its deadline comes at once": "为什么处理不了；它的期限立即到来",
  "with --error: the attempt that it is about, the header rowpost-attempt":
    "与 --error 一起：说的是第几次尝试，见消息头 rowpost-attempt",
  "a JSON object for each line instead: type, key, consumer, error, attempt; - is standard input":
    "改为每行一个 JSON 对象：type、key、consumer、error、attempt；- 表示标准输入",
  "list what was confirmed of messages that were not there, and confirm nothing":
    "列出对不存在的消息的确认，不确认任何消息",
  "Exit code 1: some messages are neither in the table nor in its archive.":
    "退出码 1：有的消息既不在消息表里，也不在归档表里。",
  "with --once: wait for messages that wait for their next attempt, within --time-limit":
    "与 --once 一起：在 --time-limit 之内也等待下一次尝试",
  "list messages, the newest first (default: 50)": "列出消息，最新的在前（默认 50 条）",
  "show everything about one message, by its id or by its type and key; `why` names what holds it":
    "按 id，或按类型和键，显示一条消息的全部内容；`why` 说明是什么拦住了它",
  "send failed messages again, with all their attempts; with --now also those that wait for their next attempt, with --resend also messages that are sent":
    "重新发送失败的消息，次数重新计算；加上 --now 也包括等待下一次尝试的，加上 --resend 也包括已发送的",
  "hold messages back until they are resumed: those of a filter, or by a rule for one --topic, --type, --ordering-key or --all-relay":
    "挂起消息，直到恢复：筛选出的消息，或用规则挂起一个 --topic、--type、--ordering-key 或 --all-relay",
  "let suspended messages go: those of a filter, or by lifting the rule for a --topic, --type, --ordering-key or --all-relay":
    "恢复挂起的消息：筛选出的消息，或取消某个 --topic、--type、--ordering-key 或 --all-relay 的规则",
  "move sent and consumed messages into the archive table; failed ones only with --state failed":
    "把已发送和已消费的消息移入归档表；失败的只有写明 --state failed 才移",
  "serve the console, a web page and its HTTP API, over the message table, until SIGTERM":
    "为消息表提供控制台（网页和它的 HTTP API），直到收到 SIGTERM",
  "PORT or HOST:PORT; only this machine unless a host is given": "PORT 或 HOST:PORT；不写主机就只有本机能访问",
  "JSON with users and tokens; without it a one-time link for an admin is printed":
    "写有用户和令牌的 JSON；不给时打印一个供管理员使用的一次性链接",
  "write the one-time link to this file, which only you can read, instead": "改为把一次性链接写进这个只有你能读的文件",
  "nothing can be changed, whatever the role": "只读：无论什么角色都不能改动",
  "path under which a proxy serves it, such as /ops": "反向代理提供它的路径，例如 /ops",
  "address that browsers use, where a proxy stands before it": "前面有反向代理时，浏览器使用的地址",
  "what is logged to standard error": "往标准错误写哪些日志",
  "Another host than this machine needs --access: `rowpost user hash` and `rowpost token create` make":
    "要让别的机器访问，必须给出 --access：它的内容由 `rowpost user hash` 和",
  "what stands in it.": "`rowpost token create` 生成。",
  "users of the console": "控制台的用户",
  "print a user for the file of `console --access`; the password comes from standard input":
    "打印写进 `console --access` 文件的用户；密码从标准输入读取",
  "who it is, in the audit too": "是谁；审计记录里也用这个名字",
  "what it reaches, several with commas: orders, or orders.* (default: all)":
    "能管哪些主题，多个用逗号分隔：orders，或 orders.*（默认：全部）",
  "what they may do": "能做什么",
  "The password may stand in ROWPOST_NEW_PASSWORD instead.": "密码也可以放在 ROWPOST_NEW_PASSWORD 里。",
  "tokens of programs that use the console's API": "使用控制台 API 的程序的令牌",
  "make a token for programs, and print what stands in the file of `console --access`":
    "为程序生成一个令牌，并打印写进 `console --access` 文件的内容",
  "not valid after this time, such as 90d": "过了这段时间就失效，例如 90d",
  "place this many orders (default: no end; 200 with --once)": "下这么多订单（默认不限；加上 --once 为 200）",
  "end when all of them have arrived; exit code 1 when one is lost or one too many":
    "全部到达后结束；丢失或多出一条，退出码为 1",
  "orders a second (default: 20; with --orders as fast as it goes)": "每秒订单数（默认 20；加上 --orders 则越快越好）",
  "another database than an embedded SQLite file; made where it is missing":
    "用别的数据库，而不是内嵌的 SQLite 文件；没有会自动创建",
  "instead of HTTP to a consumer on this host": "，代替发往本机消费者的 HTTP",
  "keep the SQLite file": "保留 SQLite 文件",
  "print stacks of errors": "显示错误的堆栈",
  "The last line compares the consumer's own table with the orders that were committed:":
    "最后一行拿消费者自己的表与已提交的订单对账：",
  "ROWPOST_DATABASE_URL and ROWPOST_BROKER_URL are not used here.":
    "这里不使用 ROWPOST_DATABASE_URL 和 ROWPOST_BROKER_URL。",
  "mysql://, mariadb://, postgres:// or sqlite:FILE; a password may stand in ROWPOST_DATABASE_PASSWORD instead":
    "mysql://、mariadb://、postgres:// 或 sqlite:文件；密码可以写在 ROWPOST_DATABASE_PASSWORD 里",
  "layout of the message table: default, t_local_message, message_table, or FILE.json for a table of your own":
    "消息表的表结构：default、t_local_message、message_table，或者描述你自己的表的 FILE.json",
  "the message table, NAME or SCHEMA.NAME": "消息表，写作 表名 或 SCHEMA.表名",
  "what the state column holds, such as pending=待发送,sent=已发送": "状态列里的值，例如 pending=待发送,sent=已发送",
  "print JSON": "输出 JSON",
  "print the SQL and run nothing, for Flyway and its like": "只输出 SQL，不执行，供 Flyway 之类的工具使用",
  "topics that go to another broker, such as 'orders.*=https://…'; may be given several times, the first match wins; without --broker the relay leaves all other topics to other relays":
    "发往另一个中间件的主题，例如 'orders.*=https://…'；可以写多次，先匹配的优先；不写 --broker 时，其余主题留给其他 relay",
  "send what is due and end; exit code 1 when not all of it could be sent, 3 when messages wait for their next attempt or have failed":
    "把到期的发完就结束；没有全部发出，退出码为 1；有消息等待下一次尝试或失败，退出码为 3",
  "with --once: end after this time in any case": "与 --once 一起：到了这个时间一定结束",
  "publish to memory: or stdout: although another relay works on this table":
    "即使这张表上有别的 relay 在运行，也发往 memory: 或 stdout:",
  "name of this relay in `rowpost status` (default: host:pid)":
    "这个 relay 在 `rowpost status` 里的名称（默认 主机:pid）",
  "least level to log": "日志的最低级别",
  "json, or pretty on a terminal": "json；在终端上是便于阅读的 pretty",
  "Durations are written 500ms, 10s, 5m, 6h, 7d. Logs go to standard error.":
    "时长写作 500ms、10s、5m、6h、7d。日志写到标准错误。",
  "# for cron, or to look at what waits": "# 用于 cron，或查看有什么在等待",
  "# the rest goes to RocketMQ; #partner: the secret of this URL stands in ROWPOST_HTTP_SECRET_PARTNER":
    "# 其余的发到 RocketMQ；#partner：这个 URL 的密钥在 ROWPOST_HTTP_SECRET_PARTNER 里",
  "count all messages, the sent ones too: reads the whole table": "统计所有消息，包括已发送的：会读整张表",
  "Unfinished messages are counted up to 10,000 of each state. The topics of 300 of them are looked":
    "未完成的消息每种状态最多数到 10,000 条，其中 300 条看它的主题，",
  "at, of failed ones all that are counted; 300+ means at least so many, and topics may be missing.":
    "失败的看所有数到的；300+ 表示至少有这么多，也可能缺少某些主题。",
  "ids, several with commas": "id，多个用逗号分隔",
  topic: "主题",
  "ordering key": "顺序键",
  "states, several with commas: pending, sending, sent, failed, consumed, suspended":
    "状态，多个用逗号分隔：pending、sending、sent、failed、consumed、suspended，或对应的中文",
  "part of the reason of the last failure": "最近一次失败原因里的一段文字",
  "created after: 2026-11-21T08:00:00Z, a day, or how long ago (2h)":
    "在此之后创建：2026-11-21T08:00:00Z、某一天，或多久以前（2h）",
  "created before": "在此之前创建",
  "at most this many": "最多这么多条",
  "look into the archive": "查看归档",
  "how long to look for messages that no index leads to; exit code 1 when it was not enough":
    "没有索引可用时最多找多久；时间不够，退出码为 1",
  "id of the message": "消息的 id",
  "message type, together with --key": "消息类型，与 --key 一起使用",
  "message key, together with --type": "消息键，与 --type 一起使用",
  "why; kept in the audit table": "原因；记在审计表里",
  "who; kept in the audit table (default: the user of the operating system)":
    "操作人；记在审计表里（默认是操作系统的用户）",
  "send messages again that are sent already: their consumers get them twice": "已发送的也再发一次：消费者会收到两次",
  "only messages with higher ids, to go on with a --resend that was interrupted":
    "只处理 id 更大的消息，用来接着做中断了的 --resend",
  "change nothing, and count the messages that it means": "什么都不改，只数一下针对多少条消息",
  "everything that the relays of this table would send": "这张表的 relay 要发送的一切",
  "only messages that are there now, also with nothing but --topic, --type or --ordering-key":
    "只针对现有的消息，即使只写了 --topic、--type 或 --ordering-key",
  "resume by itself at this time (2026-11-21T18:00:00+08:00)": "到这个时刻自动恢复（2026-11-21T18:00:00+08:00）",
  "resume by itself after this time (30m, 6h)": "过这么久自动恢复（30m、6h）",
  "delete them instead: they are gone": "直接删除，不再保留",
  ...QUEUE_CHINESE,
};

const BEHIND_FORMS = / (instead of .+)$/;

function chinese(english: string): string {
  return CHINESE[english] ?? english.replace(BEHIND_FORMS, (_, text: string) => CHINESE[text] ?? ` ${text}`);
}

/** A line of the text after a help, or the comment of an example. */
export function chineseLine(line: string): string {
  const [, before = "", text = ""] = /^(.*?\s(?=# )|\s*)(.*)$/.exec(line) ?? [];
  return before + chinese(text);
}

export function speakChinese(command: Command, write: (text: string) => void): void {
  command.description(chinese(command.description()));
  for (const one of [...command.options, ...command.registeredArguments]) one.description = chinese(one.description);
  const said = (text: string): string =>
    chinese(text).replace("(choices: ", "(可选：").replace("default: ", "默认：").replace("env: ", "环境变量：");
  command.configureHelp({
    styleTitle: chinese,
    optionDescription: (option) => said(Help.prototype.optionDescription.call(new Help(), option)),
    subcommandDescription: (one) => chinese(one.summary() || one.description()),
  });
  command.configureOutput({ writeOut: (text) => write(text.split("\n").map(chineseLine).join("\n")) });
}
