/** What people read, in 80 columns and both languages: every command that prints for them. */
import { readFile } from "node:fs/promises";
import { stripVTControlCharacters } from "node:util";
import { createLayout, type LayoutOptions, migrate } from "rowpost";
import { createQueue } from "rowpost/queue";
import { sqlite } from "rowpost/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCommandLine } from "../src/cli/program.ts";
import { insertMessages, temporaryFile } from "./command.ts";

let place: Awaited<ReturnType<typeof temporaryFile>>;
const LONG = "an-order-service.with.a.very.long.name.of.its.topic.that.nobody.would.read.aloud";
const QUEUED = "a_topic_of_thirty_one_letter";

beforeAll(async () => {
  place = await temporaryFile();
  const database = sqlite({ file: place.file });
  await migrate(database, { layout: database.defaultLayout });
  await insertMessages(database, { count: 3, topic: LONG, prefix: `key-of-${LONG}` });
  const session = await database.connect({ purpose: "tool" });
  for (const text of [
    "UPDATE local_message SET state = 3, fail_reason = 'HTTP_422: POST http://127.0.0.1:8080/a/very/long/address answered 422: no stock of item 4711 in warehouse 12' WHERE id = 1",
    "UPDATE local_message SET next_retry_at = '3000-01-01 00:00:00.001' WHERE id = 3",
    `CREATE TABLE app_event (event_id INTEGER PRIMARY KEY, kind TEXT NOT NULL, ref TEXT NOT NULL, channel TEXT NOT NULL,
      payload TEXT NOT NULL, status TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0, next_try TEXT, error TEXT,
      created TEXT NOT NULL, changed TEXT NOT NULL, UNIQUE (kind, ref))`,
    "INSERT INTO app_event (kind, ref, channel, payload, status, created, changed) VALUES ('a', '1', 'c', '{}', 'new', '2026-11-20 08:00:00.000', '2026-11-20 08:00:00.000')",
  ])
    await session.run({ name: "test", text, params: [] });
  await session.close();
  const queue = createQueue({ database });
  await queue.migrate();
  await queue.createTopic({ topic: QUEUED, partitions: 2 });
  await queue.append({ topic: QUEUED, body: { a: 1 } });
  await queue.close();
  await database.close();
});
afterAll(() => place.remove());

async function printed(line: string, language: "en" | "zh", isTTY = true) {
  let stdout = "";
  let stderr = "";
  const code = await runCommandLine([...line.split(" "), "--database", place.url], {
    environment: { ROWPOST_LANG: language },
    stdout: {
      isTTY,
      columns: 80,
      write(text) {
        stdout += text;
      },
    },
    stderr: {
      write(text) {
        stderr += text;
      },
    },
  });
  return { code, stdout, stderr, lines: stripVTControlCharacters(stdout).split("\n") };
}

const ADOPT =
  "adopt app_event --column messageType=kind --column messageKey=ref --column topic=channel --column messageBody=payload --column state=status --column retryCount=tries --column nextRetryAt=next_try --column failReason=error --column gmtCreate=created --column gmtModified=changed --state pending=new --clock utc";
const COMMANDS = [
  ...["status", "list", "show 1", "show 3", "list --state failed", "doctor", "migrate", ADOPT],
  ...["suspend --type t --reason x", "status", "resume --type t --reason x", "archive --limit 1"],
  ...["retry --id 999 --reason x", "reset-backoff --topic none --reason x", "alert list"],
  ...["queue topics", "queue groups", `queue groups ${QUEUED}`, `queue search ${QUEUED}`, `queue verify ${QUEUED}`],
];
const COLUMNS_OF_TABLES = /^(ID|TOPIC|WHAT|RELAY|SUSPENDED|GROUP|MESSAGE|PARTITION)\b/;

describe.each(["en", "zh"] as const)("in %s", (language) => {
  test.each(COMMANDS)("%s", async (command) => {
    const { lines, stderr, stdout } = await printed(command, language);
    expect(stderr).not.toMatch(/unknown (option|command)|TypeError|未知/);
    // One language, no sentinel of the database, and no blanks where lines were meant.
    expect(stdout).not.toMatch(/3000-01-01|9999-12-31| {12,}\S.* {12,}\S.* {12,}\S.* {12,}/);
    if (language === "en") expect(stdout.replaceAll("王芳", "")).not.toMatch(/\p{Script=Han}/u);
    // A row of a table is a line of the terminal.
    let isTable = false;
    for (const line of lines) {
      isTable = line === "" ? false : isTable || COLUMNS_OF_TABLES.test(line);
      if (isTable) expect([command, line, Array.from(line).length <= 80]).toEqual([command, line, true]);
    }
  });
});

test("a state is one word, of the language", async () => {
  const stateOf = async (language: "en" | "zh") => (await printed("show 1", language, false)).stdout;
  expect(await stateOf("en")).toMatch(/^state +failed$/m);
  expect(await stateOf("zh")).toMatch(/^state +发送失败$/m);
});

test("the report of adopt has lines, in either language, and createLayout takes its file", async () => {
  const english = await printed(ADOPT, "en");
  expect(english.lines).toEqual(expect.arrayContaining(["lost", "  orderingKey: no order per key", "taking it over"]));
  const file = `${place.file}.layout.json`;
  const chinese = await printed(`${ADOPT} --write ${file}`, "zh");
  expect(chinese.lines).toEqual(expect.arrayContaining(["失去", "  orderingKey：没有按键的顺序", "接管步骤"]));
  const sentences = chinese.lines.filter(
    (line) => /^ {0,2}[a-z]+ [a-z]+ [a-z]+ /.test(line) && !/^ *rowpost /.test(line),
  );
  expect(sentences).toEqual([]);
  const layout = createLayout(JSON.parse(await readFile(file, "utf8")) as LayoutOptions);
  expect([layout.table, layout.columns.orderingKey, layout.columns.topic]).toEqual(["app_event", undefined, "channel"]);
  expect((await printed(`status --layout ${file}`, "en")).code).toBe(1);
});
