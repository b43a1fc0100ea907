import { Argument, Command, Option } from "commander";
import type { AlertStore, Silence } from "rowpost/admin";
import type { AlertConfig } from "../alerts/config.ts";
import { titleOf } from "../alerts/rule-texts.ts";
import { RULE_NAMES } from "../alerts/rules.ts";
import type { Alert, AlertsState } from "../alerts/state.ts";
import { durationText } from "../alerts/wording.ts";
import { duration, InputError } from "./arguments.ts";
import { addConnectionOptions, type ConnectionFlags, withDatabase } from "./connection.ts";
import { type CommandContext, type ExitCode, keepSecret } from "./context.ts";
import { type ActionFlags, actionOf, addActionOptions } from "./filter.ts";
import { printJson, printLine, tableText } from "./output.ts";

type Finish = (code: ExitCode) => void;

interface AlertFlags extends ConnectionFlags {
  readonly alerts?: string;
}

export function alertCommand(context: CommandContext, finish: Finish): Command {
  const command = new Command("alert").description("what is wrong, who is told of it, and what is silenced");
  for (const make of [checkCommand, listCommand, testCommand, silenceCommand]) {
    command.addCommand(make(context, finish));
  }
  return command;
}

export function alertsOption(): Option {
  return new Option("--alerts <file>", "JSON with the channels that are told what is wrong, and the rules");
}

/** The file of `--alerts`; its secrets are kept out of all output. Undefined if not given. */
export async function alertConfig(
  context: CommandContext,
  { alerts }: Pick<AlertFlags, "alerts">,
): Promise<AlertConfig | undefined> {
  if (alerts === undefined) return undefined;
  const { readAlertFile } = await import("../alerts/config.ts");
  const config = readAlertFile(alerts, context.environment);
  for (const secret of config.secrets) keepSecret(context, secret);
  return config;
}

function checkCommand(context: CommandContext, finish: Finish): Command {
  return addConnectionOptions(new Command("check"))
    .description("look once, tell the channels of --alerts what is due, and print what is wrong")
    .addOption(alertsOption().makeOptionMandatory())
    .requiredOption("--once", "one look, for cron; rowpost relay and rowpost console look all the time")
    .addHelpText(
      "after",
      `
Where another process evaluates already, this prints what that one knows, and tells nobody.

Exit codes: 0 nothing is wrong, 1 something is, or the database does not answer, 2 wrong input.

Examples:
  rowpost alert check --once --database sqlite:./app.db --alerts alerts.json
  * * * * * rowpost alert check --once --alerts /etc/rowpost/alerts.json   # every minute, by cron`,
    )
    .action(async (flags: AlertFlags) => {
      const config = await alertConfig(context, flags);
      // Required by commander: without channels, due notices would be marked as sent.
      if (config === undefined) throw new InputError("--alerts is missing");
      const [{ createLog }, { evaluateOnce }] = await Promise.all([import("../log.ts"), import("../alerts/start.ts")]);
      const logger = createLog(context, { level: "error", format: context.stderr.isTTY ? "pretty" : "json" });
      const state = await withDatabase(context, flags, { mayCreateFile: false }, async ({ database, layout }) => {
        const options = { sources: [{ name: "main", database, layout }], config, logger };
        const mine = await evaluateOnce(options);
        return mine ?? (await withStore(context, flags, (store) => known(store)));
      });
      print(context, flags, state, []);
      const isAway = alertsIn(state, "waiting").some(({ rule }) => rule === "database" || rule === "schema");
      finish(isAway || alertsIn(state, "firing").length > 0 ? 1 : 0);
    });
}

function listCommand(context: CommandContext, finish: Finish): Command {
  return addConnectionOptions(new Command("list"))
    .description("what is wrong, as whoever evaluates knows it, and what is silenced")
    .addHelpText(
      "after",
      `
Examples:
  rowpost alert list --database sqlite:./app.db
  rowpost alert list --database mysql://app@127.0.0.1/shop --json`,
    )
    .action(async (flags: AlertFlags) => {
      const { silences, state } = await withStore(context, flags, async (store) => ({
        state: await known(store),
        silences: (await store.silences()).filter(({ active }) => active),
      }));
      print(context, flags, state, silences);
      finish(0);
    });
}

function testCommand(context: CommandContext, finish: Finish): Command {
  return new Command("test")
    .description("send a test notice to a channel of --alerts, and print what it answers")
    .argument("<channel>", "its name in the file")
    .addOption(alertsOption().makeOptionMandatory())
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Exit codes: 0 the channel has taken it, 1 it has not, 2 wrong input.

Examples:
  rowpost alert test night --alerts alerts.json`,
    )
    .action(async (name: string, flags: AlertFlags & { readonly json?: true }) => {
      const config = await alertConfig(context, flags);
      const { alertChannels } = await import("../alerts/test-notice.ts");
      const channels = config && alertChannels(config);
      if (channels?.names.includes(name) !== true) {
        const names = channels?.names.join(", ") || "no channel";
        throw new InputError(`there is no channel ${name} in --alerts; it names ${names}`);
      }
      const answer = await channels.test(name, "main");
      if (flags.json === true) printJson(context, { channel: name, ...answer });
      else printLine(context, answer.ok ? `${name} has taken it` : `${name} has not taken it: ${answer.answer}`);
      finish(answer.ok ? 0 : 1);
    });
}

interface SilenceFlags extends ConnectionFlags, ActionFlags {
  readonly topic?: string;
  readonly for: number;
  readonly end?: string;
}

function silenceCommand(context: CommandContext, finish: Finish): Command {
  return addActionOptions(addConnectionOptions(new Command("silence")))
    .description("tell nobody of a rule for a while, seven days at most; or end that with --end")
    .addArgument(new Argument("[rule]", "one rule; without it all are meant").choices(RULE_NAMES))
    .option("--topic <topic>", "only this topic, type or broker, topic/group or id of a finding")
    .addOption(new Option("--for <duration>", "for so long").argParser(duration).default(3_600_000, "1h"))
    .option("--end <id>", "end this silence now")
    .addHelpText(
      "after",
      `
Examples:
  rowpost alert silence failed --topic orders --for 2h --reason "ticket 7" --database sqlite:./app.db
  rowpost alert silence --end 3f0c6b1e-… --reason done --database sqlite:./app.db`,
    )
    .action(async (rule: string | undefined, flags: SilenceFlags) => {
      const { end, for: forMs, topic: subject } = flags;
      const action = actionOf(context, flags);
      await withStore(context, flags, async (store) => {
        if (end !== undefined) {
          const isEnded = await store.endSilence({ id: end, action });
          if (!isEnded)
            throw new InputError(`there is no silence ${end} that is active: rowpost alert list shows them`);
          if (flags.json === true) printJson(context, { ended: end });
          else printLine(context, "the silence is over");
          return;
        }
        const id = await store.silence({ rule, subject, forMs, action });
        if (flags.json === true) printJson(context, { id });
        else printLine(context, `silenced for ${durationText(forMs, "en")}: ${id}`);
      });
      finish(0);
    });
}

async function withStore<Result>(
  context: CommandContext,
  flags: ConnectionFlags,
  work: (store: AlertStore) => Promise<Result>,
): Promise<Result> {
  return await withDatabase(context, flags, { mayCreateFile: false }, async ({ database, layout }) => {
    const store = database.alerts({ layout });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  });
}

async function known(store: AlertStore): Promise<AlertsState> {
  const { parseState } = await import("../alerts/state.ts");
  return parseState((await store.read()).state);
}

function alertsIn({ alerts }: AlertsState, phase: Alert["phase"]): Alert[] {
  return Object.values(alerts).filter((alert) => alert.phase === phase);
}

function print(
  context: CommandContext,
  { json }: ConnectionFlags,
  state: AlertsState,
  silences: readonly Silence[],
): void {
  const [firing, waiting] = [alertsIn(state, "firing"), alertsIn(state, "waiting")];
  if (json === true) {
    printJson(context, { firing, waiting, silences, channels: state.channels });
    return;
  }
  if (firing.length + waiting.length + silences.length === 0) printLine(context, "nothing is wrong");
  const rows = [...firing, ...waiting].map((alert) => [
    ...[
      alert.phase,
      alert.severity,
      alert.rule,
      titleOf(alert, "en"),
      durationText(state.clockMs - alert.sinceMs, "en"),
    ],
  ]);
  const titles = ["STATE", "SEVERITY", "RULE", "WHAT", "FOR"].map((title) => ({ title }));
  if (rows.length > 0) printLine(context, tableText(context, titles, rows));
  for (const { author, endsAt, id, reason, rule = "every rule", subject } of silences) {
    printLine(
      context,
      `silenced until ${endsAt}: ${rule}${subject === undefined ? "" : ` ${subject}`}, by ${author}: ${reason} (${id})`,
    );
  }
}

export const ALERT_CHINESE: Readonly<Record<string, string>> = {
  "what is wrong, who is told of it, and what is silenced": "告警：有哪些问题、通知谁、哪些已静默",
  "JSON with the channels that are told what is wrong, and the rules": "JSON 文件：告警通知的渠道和规则",
  "look once, tell the channels of --alerts what is due, and print what is wrong":
    "检查一次，向 --alerts 的渠道发送该发的通知，并打印现有问题",
  "one look, for cron; rowpost relay and rowpost console look all the time":
    "只检查一次，供 cron 使用；rowpost relay 和 rowpost console 会持续检查",
  "Where another process evaluates already, this prints what that one knows, and tells nobody.":
    "已有其他进程在判定告警时，只打印它所知道的，不发通知。",
  "# every minute, by cron": "# 由 cron 每分钟运行",
  "Exit codes: 0 nothing is wrong, 1 something is, or the database does not answer, 2 wrong input.":
    "退出码：0 没有问题；1 有问题或数据库无应答；2 输入有误。",
  "what is wrong, as whoever evaluates knows it, and what is silenced":
    "列出当前告警（以判定告警的进程所知为准）和静默",
  "send a test notice to a channel of --alerts, and print what it answers":
    "向 --alerts 的一个渠道发送测试通知，并打印其应答",
  "its name in the file": "文件中的渠道名",
  "Exit codes: 0 the channel has taken it, 1 it has not, 2 wrong input.":
    "退出码：0 渠道已接收；1 未接收；2 输入有误。",
  "tell nobody of a rule for a while, seven days at most; or end that with --end":
    "在一段时间内（最长 7 天）不通知某条规则；或用 --end 结束静默",
  "one rule; without it all are meant": "一条规则；不给出则指全部规则",
  "only this topic, type or broker, topic/group or id of a finding": "仅此主题、类型、中间件、topic/group 或体检项编号",
  "for so long": "静默时长",
  "end this silence now": "立即结束此静默",
};
