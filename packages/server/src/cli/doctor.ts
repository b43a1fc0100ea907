import { Command, Option } from "commander";
import type { Database } from "rowpost";
import { type Diagnosis, examine, type Severity } from "rowpost/admin";
import { collectRoutes, planBrokers, ROUTES_VARIABLE } from "../broker-routes.ts";
import { BROKER_URL_VARIABLE, brokerForms } from "../broker-url.ts";
import { isChinese } from "../language.ts";
import { addConnectionOptions, type ConnectionFlags, withDatabase } from "./connection.ts";
import { type CommandContext, type ExitCode, redact } from "./context.ts";
import { countText, printJson, printLine, withoutControls } from "./output.ts";

interface DoctorFlags extends ConnectionFlags {
  readonly broker?: string;
  readonly route?: readonly string[];
}

export function doctorCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addConnectionOptions(new Command("doctor"))
    .description("look for what keeps messages from going out or could lose them, and say what mends it")
    .addOption(new Option("--broker <url>", brokerForms()).env(BROKER_URL_VARIABLE))
    .addOption(
      new Option("--route <pattern=url>", "topics that go to another broker, as with rowpost relay")
        .argParser(collectRoutes)
        .env(ROUTES_VARIABLE),
    )
    .addHelpText(
      "after",
      `
It changes nothing. What it may not look at, it says. With --broker it looks whether that answers.

Exit codes: 0 nothing is wrong, 1 errors, 3 warnings only, 2 wrong input.

Examples:
  rowpost doctor --database sqlite:./app.db
  rowpost doctor --database mysql://app@127.0.0.1/shop --broker rocketmq://127.0.0.1:8081
  rowpost doctor --database postgres://app@127.0.0.1/shop --json`,
    )
    .action(async (flags: DoctorFlags) => {
      const { found, server } = await withDatabase(context, flags, { mayCreateFile: false }, async (opened) => {
        const { database, layout } = opened;
        const examination = await examine({ database, layout });
        return { ...examination, found: [...(await lookAtBroker(context, flags, database)), ...examination.found] };
      });
      if (flags.json === true)
        printJson(context, { server, found: found.map((each) => redacted(context, each, "en")) });
      else printLine(context, reportText(context, server, found));
      finish(exitCode(found));
    });
}

async function lookAtBroker(context: CommandContext, flags: DoctorFlags, database: Database): Promise<Diagnosis[]> {
  if (flags.broker === undefined && flags.route === undefined) return [];
  const plan = planBrokers(context, flags, "--broker is missing");
  let broker: Awaited<ReturnType<typeof plan.open>> | undefined;
  try {
    broker = await plan.open(database);
    await broker.check();
    return [];
  } catch (error) {
    return [unusable(plan.label, error instanceof Error ? error.message : String(error))];
  } finally {
    await broker?.close();
  }
}

function unusable(broker: string, error: string): Diagnosis {
  return {
    id: "D501",
    severity: "error",
    what: `the broker ${broker} cannot be used: ${error}`,
    why: "nothing goes to it from this machine",
    mend: "mend its address or login, or bring it back; then run this again",
    zh: {
      what: `中间件 ${broker} 不可用：${error}`,
      why: "这台机器发不出消息给它",
      mend: "修正它的地址或登录，或恢复它；再检查一次",
    },
  };
}

function exitCode(found: readonly Diagnosis[]): ExitCode {
  if (found.some(({ severity }) => severity === "error")) return 1;
  return found.some(({ severity }) => severity === "warning") ? 3 : 0;
}

/** In the language of the help; JSON is for programs and stays in English. */
const WORDS = {
  en: {
    severities: { error: "error", warning: "warning", note: "note" },
    why: "why: ",
    mend: "mend: ",
    colon: ": ",
    count: countText,
    and: ", ",
    nothing: "nothing is wrong",
    on: (server: string) => ` on ${server}`,
  },
  zh: {
    severities: { error: "错误", warning: "警告", note: "提示" },
    why: "原因：",
    mend: "处理：",
    colon: "：",
    count: (count: number, severity: string) => `${count} 个${severity}`,
    and: "，",
    nothing: "没有问题",
    on: (server: string) => `（${server}）`,
  },
};

function reportText(context: CommandContext, server: string | undefined, found: readonly Diagnosis[]): string {
  const language = isChinese(context.environment) ? "zh" : "en";
  const { severities, ...words } = WORDS[language];
  const blocks = found.map((each) => {
    const { id, mend, severity, what, why } = redacted(context, each, language);
    const head = `${severities[severity]} ${id}${words.colon}${what}`;
    return `${head}\n  ${words.why}${why}\n  ${words.mend}${mend}`;
  });
  const count = (severity: Severity): number => found.filter((each) => each.severity === severity).length;
  const counts = (["error", "warning", "note"] as const)
    .filter((severity) => count(severity) > 0)
    .map((severity) => words.count(count(severity), severities[severity]));
  const place = server === undefined ? "" : words.on(server);
  return [...blocks, `${counts.length === 0 ? words.nothing : counts.join(words.and)}${place}`].join("\n\n");
}

/** Errors of drivers may repeat a URL; rows may hold control characters. */
function redacted(context: CommandContext, { id, severity, zh, ...en }: Diagnosis, language: "en" | "zh") {
  const clean = (text: string): string => withoutControls(redact(context, text));
  const { mend, what, why } = language === "zh" ? zh : en;
  return { id, severity, what: clean(what), why: clean(why), mend: clean(mend) };
}

export const DOCTOR_CHINESE: Readonly<Record<string, string>> = {
  "look for what keeps messages from going out or could lose them, and say what mends it":
    "检查什么会让消息发不出去或可能丢失，并给出处理办法",
  "topics that go to another broker, as with rowpost relay": "发往其他中间件的主题，与 rowpost relay 相同",
  "It changes nothing. What it may not look at, it says. With --broker it looks whether that answers.":
    "它不改动任何数据；没有权限查看的会说明。给出 --broker 时也检查中间件是否有应答。",
  "Exit codes: 0 nothing is wrong, 1 errors, 3 warnings only, 2 wrong input.":
    "退出码：0 没有问题；1 有错误；3 只有警告；2 输入有误。",
};
