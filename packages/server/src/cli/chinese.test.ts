import { expect, it } from "vitest";
import { isChinese } from "../language.ts";
import { CHINESE, chineseLine } from "./chinese.ts";
import { createContext, type Environment } from "./context.ts";
import { commandsOf, createProgram, pathOf, runCommandLine } from "./program.ts";

async function helpOf(args: readonly string[], language: string): Promise<string> {
  let text = "";
  const output = {
    write: (chunk: string) => {
      text += chunk;
    },
  };
  const environment: Environment = { environment: { ROWPOST_LANG: language }, stdout: output, stderr: output };
  await runCommandLine([...args, "--help"], environment);
  return text;
}

async function englishTexts(): Promise<ReadonlySet<string>> {
  const nowhere = { write: () => undefined };
  const program = createProgram(createContext({ environment: {}, stdout: nowhere, stderr: nowhere }), () => undefined);
  const texts = new Set(["display help for command", "show the help of a command", "Arguments:"]);
  for (const command of [program, ...commandsOf(program)]) {
    texts.add(command.description());
    for (const { description } of [...command.options, ...command.registeredArguments]) texts.add(description);
    const help = await helpOf(pathOf(command).split(" ").slice(1), "en");
    for (const [title] of help.matchAll(/^(Usage|Options|Commands):/gm)) texts.add(title);
    const prose = [...help.matchAll(/^(?=[^\s-])(?!Usage|Options|Commands|Arguments)\S.*$|# .*$/gm)].map(
      ([line]) => line,
    );
    const wrapped = command.description().split(" ");
    for (const line of prose) if (!line.split(" ").every((word) => wrapped.includes(word))) texts.add(line);
  }
  return texts;
}

const isForms = (text: string): boolean => /^memory:, /.test(text);

it("has a Chinese text for each English one, and no others", async () => {
  const english = [...(await englishTexts())].filter((text) => !isForms(text));
  const dynamic = "instead of HTTP to a consumer on this host";
  const missing = english.filter((text) => CHINESE[text] === undefined && !text.endsWith(dynamic));
  expect(missing).toEqual([]);
  expect(Object.keys(CHINESE).filter((text) => !english.includes(text) && text !== dynamic)).toEqual([]);
});

it("prints the help in the language that was asked for", async () => {
  const chinese = await helpOf(["relay"], "zh");
  expect(chinese).toContain("用法： rowpost relay");
  expect(chinese).toContain("一次扫描和认领的消息数（默认 500）");
  expect(chinese).toContain("# 用于 cron");
  expect(await helpOf(["relay"], "en")).toContain("Usage: rowpost relay");
});

it("takes ROWPOST_LANG before the locale", () => {
  expect(isChinese({ LANG: "zh_CN.UTF-8" })).toBe(true);
  expect(isChinese({ LANG: "zh_CN.UTF-8", ROWPOST_LANG: "en" })).toBe(false);
  expect(isChinese({ LANG: "zh_CN.UTF-8", LC_ALL: "C" })).toBe(false);
  expect(isChinese({ ROWPOST_LANG: "zh" })).toBe(true);
  expect(isChinese({})).toBe(false);
});

it("leaves commands as they are", () => {
  expect(chineseLine("  rowpost list --database sqlite:./app.db")).toBe("  rowpost list --database sqlite:./app.db");
});
