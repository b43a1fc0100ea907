/** `npx rowpost …` where only the library is installed, and where the command line is too. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { parse } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const BIN = fileURLToPath(new URL("../../rowpost/bin/rowpost.js", import.meta.url));

function run(cwd: string, ...args: readonly string[]): Promise<readonly [code: unknown, output: string]> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...args, "--version"], { cwd }, (error, stdout, stderr) =>
      resolve([error === null ? 0 : error.code, stdout + stderr]),
    );
  });
}

test("the library's command runs that of rowpost-server, or names it", async () => {
  expect(await run(tmpdir(), BIN)).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+/)]);
  // From the root, and from no file: what other folders of this machine have installed is not seen.
  const alone = await readFile(BIN, "utf8");
  expect(await run(parse(BIN).root, "--input-type=module", "--eval", alone, "--")).toEqual([
    1,
    expect.stringContaining("npm install rowpost-server"),
  ]);
});
