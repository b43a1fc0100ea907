import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError, Option } from "commander";
import type { MessageState } from "rowpost/admin";
import type { Adoption } from "../adopt/adopt.ts";
import type { Property } from "../adopt/mapping.ts";
import { KNOWN } from "../adopt/synonyms.ts";
import { isChinese, type Say, sayIn } from "../language.ts";
import { InputError, stateMapping } from "./arguments.ts";
import { databaseOption, withDatabase } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { printJson, printLine, withoutControls } from "./output.ts";

interface AdoptFlags {
  readonly database?: string;
  readonly state?: Partial<Record<MessageState, string | number>>;
  readonly column?: ReadonlyMap<Property, string>;
  readonly clock?: "utc" | "server";
  readonly write?: string;
  readonly json?: true;
}

export function adoptCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return new Command("adopt")
    .description("look at a message table that is there already, and write the layout that describes it")
    .argument("<table>", "the table, NAME or SCHEMA.NAME")
    .addOption(databaseOption())
    .addOption(
      new Option("--state <mapping>", "what a value means, such as pending=0; may be given several times").argParser(
        states,
      ),
    )
    .addOption(
      new Option(
        "--column <mapping>",
        "which column is which, such as topic=channel; may be given several times",
      ).argParser(columns),
    )
    .addOption(new Option("--clock <clock>", "whose time the instants are").choices(["utc", "server"]))
    .option("--write <file>", "write the layout to this file; nothing else is written, ever")
    .option("--json", "print JSON")
    .option("--verbose", "print stacks of errors")
    .addHelpText(
      "after",
      `
It reads the catalog and the newest 10,000 rows. What the values of the state column mean it never
guesses: it lists them with their counts, and ends with exit code 2 until --state says it.

Exit codes: 0 ready, 1 something must be mended first, 2 something must be said first.

Examples:
  rowpost adopt app_event --database mysql://app@127.0.0.1/shop
  rowpost adopt app_event --database mysql://app@127.0.0.1/shop --state pending=0 --state sent=2 --write app_event.json
  rowpost relay --once --broker stdout: --database mysql://app@127.0.0.1/shop --layout app_event.json`,
    )
    .action(async (name: string, flags: AdoptFlags) => {
      const [table = "", schema, ...rest] = name.split(".").reverse();
      if (rest.length > 0) throw new InputError(`${name} has too many dots; expected NAME or SCHEMA.NAME`);
      // JSON is for programs and stays in English.
      const say = sayIn(flags.json !== true && isChinese(context.environment) ? "zh" : "en");
      const { adopt } = await import("../adopt/adopt.ts");
      const adoption = await withDatabase(context, databaseOnly(flags), { mayCreateFile: false }, ({ database }) =>
        adopt(database, {
          table,
          schema,
          states: flags.state ?? {},
          columns: flags.column ?? new Map(),
          clock: flags.clock,
          file: flags.write ?? `${table}.json`,
          say,
        }),
      );
      if (flags.write !== undefined && adoption.layout !== undefined)
        writeFileSync(flags.write, `${JSON.stringify(adoption.layout, undefined, 2)}\n`);
      if (flags.json === true) printJson(context, adoption);
      else printLine(context, reportOf(adoption, flags.write, say));
      finish(adoption.questions.length > 0 ? 2 : adoption.mustFix.length > 0 ? 1 : 0);
    });
}

function databaseOnly({ database }: AdoptFlags): { readonly database?: string } {
  return database === undefined ? {} : { database };
}

function states(text: string, before: AdoptFlags["state"] = {}): NonNullable<AdoptFlags["state"]> {
  return { ...before, ...stateMapping(text) };
}

function columns(text: string, before: ReadonlyMap<Property, string> = new Map()): ReadonlyMap<Property, string> {
  const [property = "", column = "", ...rest] = text.split("=").map((part) => part.trim());
  const known = KNOWN.find((each) => each.property === property);
  if (known === undefined || column === "" || rest.length > 0)
    throw new InvalidArgumentError(
      `"${text}" is not NAME=COLUMN; names: ${KNOWN.map((each) => each.property).join(", ")}.`,
    );
  return new Map([...before, [known.property, column]]);
}

function reportOf({ layout, ...found }: Adoption, written: string | undefined, say: Say): string {
  const part = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0
      ? []
      : [[withoutControls(title), ...lines.map((line) => `  ${withoutControls(line)}`)].join("\n")];
  const layoutText = layout === undefined ? [] : JSON.stringify(layout, undefined, 2).split("\n");
  const layoutTitle =
    written === undefined
      ? say("layout (--write FILE.json writes it)", "表结构（--write FILE.json 写入文件）")
      : say(`layout, written to ${written}`, `表结构，已写入 ${written}`);
  const { rows, server, table } = found;
  return [
    ...part(
      say(`${table} on ${server}: which column is which`, `${server} 上的 ${table}：哪一列是什么`),
      found.columns,
    ),
    ...part(say("kept", "保留"), found.features.kept),
    ...part(say("lost", "失去"), found.features.lost),
    ...part(say(`values of the state column (newest ${rows} rows)`, `状态列的值（最新 ${rows} 行）`), found.values),
    ...part(say("must be said first", "要先说明"), found.questions),
    ...part(say("must be mended first", "要先修好"), found.mustFix),
    ...part(say("good to have", "最好有"), found.advice),
    ...part(say("to know", "须知"), found.notes),
    ...part(say("how a relay would look for messages", "relay 将怎样查找消息"), found.explain),
    ...part(layoutTitle, layoutText),
    ...part(say("taking it over", "接管步骤"), layout === undefined ? [] : found.plan),
  ].join("\n\n");
}

export const ADOPT_CHINESE: Readonly<Record<string, string>> = {
  "look at a message table that is there already, and write the layout that describes it":
    "查看一张已有的消息表，写出描述它的表结构文件",
  "the table, NAME or SCHEMA.NAME": "表，写作 表名 或 SCHEMA.表名",
  "what a value means, such as pending=0; may be given several times": "某个值是什么状态，例如 pending=0；可以写多次",
  "which column is which, such as topic=channel; may be given several times":
    "哪一列是什么，例如 topic=channel；可以写多次",
  "whose time the instants are": "时间列是 UTC 还是服务器自己的时间",
  "write the layout to this file; nothing else is written, ever": "把表结构写到这个文件；除此之外什么都不写",
  "It reads the catalog and the newest 10,000 rows. What the values of the state column mean it never":
    "它读取数据字典和最新的 10,000 行。状态列的值是什么意思，它从不",
  "guesses: it lists them with their counts, and ends with exit code 2 until --state says it.":
    "猜测：列出每个值和行数，在 --state 说明之前以退出码 2 结束。",
  "Exit codes: 0 ready, 1 something must be mended first, 2 something must be said first.":
    "退出码：0 就绪；1 有些地方要先修好；2 有些事情要先说明。",
};
