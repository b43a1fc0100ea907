/**
 * Every fence of README and docs that is marked `run` runs, as a reader would run it: against the
 * built package, in a process of its own. One that is marked `test` is run by vitest.
 */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import { afterAll, describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
/**
 * Below the root, so that `rowpost` resolves to the workspace as it would in a user's project; not
 * in node_modules, where vitest looks for no tests.
 */
const FOLDER = join(ROOT, "reports", `fences-${process.pid}`);
const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");

interface Fence {
  readonly file: string;
  readonly line: number;
  readonly code: string;
  readonly isTest: boolean;
}

function markdownFiles(): string[] {
  const docs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" }).map((name) => join("docs", name));
  const top = readdirSync(ROOT, "utf8");
  return [...top, ...docs].filter((name) => name.endsWith(".md"));
}

function fencesOf(file: string): Fence[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(/^```ts (run|test)\n([\s\S]*?)^```$/gm)].map((match) => ({
    file,
    line: text.slice(0, match.index).split("\n").length,
    code: match[2] ?? "",
    isTest: match[1] === "test",
  }));
}

describe("fences marked run", () => {
  const fences = markdownFiles().flatMap(fencesOf);
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "vitest.config.mjs"), "export default {};\n"); // or that of the root holds
  afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

  it("are there, and the same ones in both languages", () => {
    const bare = (code: string): string => code.replaceAll(/\/\/.*$/gm, "").replaceAll(/[ \t]+$/gm, "");
    const of = (file: string): string[] => fences.filter((fence) => fence.file === file).map(({ code }) => bare(code));
    expect(of("README.md").length).toBeGreaterThan(0);
    for (const page of markdownFiles().filter((name) => !name.endsWith(".zh-CN.md"))) {
      expect([page, ...of(page.replace(/\.md$/, ".zh-CN.md"))]).toEqual([page, ...of(page)]);
    }
  });

  it.each(fences)("$file:$line", async ({ file, line, code, isTest }) => {
    const { outputText } = ts.transpileModule(code, {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
    });
    const name = `${relative(".", file).replaceAll("/", "-")}-${line}${isTest ? ".test" : ""}.mjs`;
    writeFileSync(join(FOLDER, name), outputText);
    const program = isTest ? [VITEST, "run", "--root", FOLDER, name] : [name];
    const { stdout } = await promisify(execFile)(process.execPath, program, { cwd: FOLDER, timeout: 80_000 });
    for (const [, expected] of code.matchAll(/console\.log\(.*\); \/\/ (.+)$/gm)) expect(stdout).toContain(expected);
  });
});
