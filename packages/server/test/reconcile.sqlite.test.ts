/** `rowpost reconcile` on a SQLite file. */
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInbox } from "rowpost/inbox";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { csvCell } from "../src/cli/findings.ts";
import { rowpostHere, temporaryFile } from "./command.ts";

const QUERY = "SELECT order_no AS message_key FROM orders WHERE paid_at >= :from AND paid_at < :to";
let place: Awaited<ReturnType<typeof temporaryFile>>;

beforeEach(async () => {
  place = await temporaryFile();
  await rowpostHere(["migrate", "--database", place.url]);
  await sql("CREATE TABLE orders (order_no TEXT, paid_at TEXT)");
  await order("first", 200);
  await message("first", 200);
});
afterEach(() => place.remove());

async function sql(...texts: string[]): Promise<void> {
  const database = sqlite({ file: place.file });
  const session = await database.connect({ purpose: "tool" });
  for (const text of texts) await session.run({ name: "test", text, params: [] });
  await session.close();
  await database.close();
}

const ago = (minutes: number): string => `strftime('%Y-%m-%d %H:%M:%f', 'now', '-${minutes} minutes')`;
const order = (key: string, minutes = 30): Promise<void> =>
  sql(`INSERT INTO orders VALUES ('${key}', ${ago(minutes)})`);
const message = (key: string, minutes = 30): Promise<void> =>
  sql(`INSERT INTO local_message (message_type, message_key, topic, message_body, state, message_id, sent_at, gmt_create)
    VALUES ('order.paid', '${key}', 'orders', '{}', 2, 'r', ${ago(minutes)}, ${ago(minutes)})`);

function run(...args: string[]): ReturnType<typeof rowpostHere> {
  return rowpostHere(["reconcile", "--database", place.url, "--type", "order.paid", ...args]);
}

describe("rowpost reconcile", () => {
  test("0: nothing found", async () => {
    const { code, stdout } = await run("--business-query", QUERY, "--from", "3h");
    expect(stdout).toMatch(/^nothing found; looked at 0 messages, from 20.*Z to 20.*Z\n$/);
    expect(code).toBe(0);
  });

  test("3: a table, what to do about it, and a line at the end", async () => {
    await order("lost");
    await message("lone");
    const { code, stdout } = await run("--business-query", QUERY, "--from", "3h");
    expect(code).toBe(3);
    expect(stdout).toMatch(/^FOUND +TYPE +KEY +ID +AT +WHAT IS WRONG\nno-message +order.paid +lost /);
    expect(stdout).toMatch(/\nno-business-row +order.paid +lone +2 +20\S+Z +the message has no business row\n/);
    expect(stdout).toContain("\nno-business-row: its consumers act on");
    expect(stdout).toMatch(/\n1 no-message, 1 no-business-row; looked at 1 business row, 1 message, from /);
  });

  test("1: not all of it could be compared", async () => {
    await order("early", 220);
    const { code, stdout } = await run("--business-query", QUERY);
    expect(code).toBe(1);
    expect(stdout).toMatch(/\n1 business rows have no message, and it is not known whether they had one/);
    expect((await run("--business-query", QUERY, "--kept-for", "7d")).code).toBe(3);
  });

  test("CSV that no spreadsheet runs, and JSON in one document", async () => {
    for (const key of ["=1+1", 'a"b,c']) await order(key);
    const query = join(dirname(place.file), "paid.sql");
    await writeFile(query, `-- of the shop\n${QUERY};\n`);
    const csv = await run("--business-query", `@${query}`, "--from", "3h", "--format", "csv");
    const lines = csv.stdout.trimEnd().split("\n");
    expect(lines[0]).toBe("kind,type,key,id,at,consumer,problem,advice");
    expect(lines[1]).toMatch(/^no-message,order\.paid,'=1\+1,,,,/);
    expect(lines[2]).toMatch(/^no-message,order\.paid,"a""b,c",,,,/);
    expect(lines).toHaveLength(3);
    for (const sign of ["=", "+", "-", "@", "\t", "\r"]) expect(csvCell(`${sign}x`)).toMatch(/^"?'/);
    for (const flags of [["--json"], ["--format", "json"]]) {
      const { code, stdout } = await run("--business-query", QUERY, "--from", "3h", ...flags);
      expect(code).toBe(3);
      expect(JSON.parse(stdout)).toMatchObject({
        list: [{ kind: "no-message", key: "=1+1" }, { key: 'a"b,c' }],
        findings: 2,
        complete: true,
        counts: { "no-message": 2 },
      });
    }
    expect(JSON.parse((await run("--json", "--from", "3h")).stdout)).toMatchObject({ list: [], findings: 0 });
  });

  test("a consumer's database", async () => {
    const other = await temporaryFile();
    const database = sqlite({ file: other.file });
    const inbox = createInbox({ database, consumer: "points" });
    await inbox.migrate();
    const handled = (key: string): Promise<unknown> =>
      inbox.handle(database, { message: { type: "order.paid", key } }, () => Promise.resolve());
    await handled("first");
    await handled("ghost");
    await database.close();
    const there = ["--consumer-database", other.url, "--from", "5h", "--to", "2036-01-01"];
    const { code, stdout } = await run(...there, "--inbox", "--consumer", "points", "--format", "csv");
    expect(code).toBe(3);
    expect(stdout.trimEnd().split("\n").slice(1)).toEqual([
      expect.stringMatching(/^unknown-to-producer,order.paid,ghost,/),
    ]);
    const twice = "SELECT 'first' AS message_key UNION ALL SELECT 'first'";
    expect((await run(...there, "--effects-query", twice)).stdout).toContain("1 consumed-twice; looked at 1 message,");
    await other.remove();
  });

  test("2: what cannot be asked", async () => {
    for (const args of [
      ["--consumer", "points"],
      ["--json", "--format", "csv"],
      ["--inbox", "a.b.c"],
      ["--business-query", "SELECT 1; DROP TABLE orders"],
      ["--business-query", "DELETE FROM orders"],
      ["--business-query", "@/nowhere/query.sql"],
      ["--business-query", QUERY, "--time-zone", "Mars/Olympus"],
      ["--consumer-database", "ftp://x"],
    ]) {
      const { code, stderr, stdout } = await run(...args);
      expect([args, code, stdout]).toEqual([args, 2, ""]);
      expect(stderr).toMatch(/^rowpost: [^\n]+\n$/);
    }
  });
});
