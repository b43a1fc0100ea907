/**
 * The runbook's words are the log's words: each line of its table is logged, and each logged one is
 * in it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const FOLDERS = [
  ...["relay/", "queue/", "inbox/", "consume/", "runtime/"].map((name) => `../../src/${name}`),
  "../../../server/src/confirm-topic/",
].map((folder) => fileURLToPath(new URL(folder, import.meta.url)));
const PAGES = fileURLToPath(new URL("../../../../docs/", import.meta.url));

/** What they log at level warning or error, in their own words. */
function logged(): readonly string[] {
  const names = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { encoding: "utf8", recursive: true }).map((name) => `${folder}${name}`),
  );
  const sources = names.filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  const lines = sources.flatMap((name) => [
    ...readFileSync(name, "utf8").matchAll(/[lL]ogger\.(?:warn|error)\(\s*"([^"]+)"/g),
  ]);
  return lines.map(([, line = ""]) => line);
}

describe.each(["operations.md", "operations.zh-CN.md"])("%s", (page) => {
  it("has each line that they log at level warning or error, as it is logged, and no other", () => {
    const rows = readFileSync(`${PAGES}${page}`, "utf8").split("\n");
    const table = rows.slice(rows.findIndex((row) => /^\| (line|日志) \|/.test(row)) + 2);
    const end = table.findIndex((row) => !row.startsWith("|"));
    const listed = table.slice(0, end).map((row) => /^\| `([^`]+)` \|/.exec(row)?.[1] ?? row);
    expect(listed.filter((line) => !logged().includes(line))).toEqual([]);
    expect(logged().filter((line) => !listed.includes(line))).toEqual([]);
    expect(new Set(listed).size).toBe(listed.length);
  });
});
