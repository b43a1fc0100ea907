/** `--layout FILE.json`: somebody's own table in every command, and errors that name the place. */
import { writeFile } from "node:fs/promises";
import { sqlite } from "rowpost/sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rowpost, rowpostHere, temporaryFile } from "./command.ts";

const LAYOUT = {
  table: "app_event",
  columns: {
    id: "event_id",
    messageType: "kind",
    messageKey: "ref",
    topic: "channel",
    messageBody: "payload",
    state: "status",
    retryCount: "tries",
    nextRetryAt: "next_try",
    failReason: "error",
    messageId: "receipt",
    lockVersion: "version",
    gmtCreate: "created",
    gmtModified: "changed",
    lastRetryAt: null,
    headers: null,
    contentType: null,
    orderingKey: null,
    deliveryCount: null,
    deliverAt: null,
    sentAt: null,
    consumedAt: null,
    createdBy: null,
    updatedBy: null,
    settlePad: null,
  },
  states: { pending: "new", sending: "busy", sent: "done", failed: "error", consumed: "read", suspended: "held" },
};

let place: Awaited<ReturnType<typeof temporaryFile>>;
let file: string;

beforeAll(async () => {
  place = await temporaryFile();
  file = `${place.file}.layout.json`;
});
afterAll(() => place.remove());

test("a relay publishes the rows of the table that a file describes, and list, show and status read them", async () => {
  const database = sqlite({ file: place.file });
  const session = await database.connect({ purpose: "tool" });
  for (const text of [
    `CREATE TABLE app_event (event_id INTEGER PRIMARY KEY AUTOINCREMENT,
      kind TEXT NOT NULL, ref TEXT NOT NULL, channel TEXT NOT NULL, payload TEXT NOT NULL, status TEXT NOT NULL,
      tries INTEGER NOT NULL DEFAULT 0, next_try TEXT, error TEXT, receipt TEXT, version INTEGER NOT NULL DEFAULT 0,
      created TEXT NOT NULL, changed TEXT NOT NULL, UNIQUE (kind, ref))`,
    "CREATE INDEX app_event_status ON app_event (status, next_try)",
    `INSERT INTO app_event (kind, ref, channel, payload, status, created, changed)
      VALUES ('user.joined', '42', 'users', '{"id":42}', 'new', '2026-11-20 08:00:00.000', '2026-11-20 08:00:00.000')`,
  ])
    await session.run({ name: "test", text, params: [] });
  await session.close();
  await database.close();
  await writeFile(file, JSON.stringify(LAYOUT));
  const run = (...args: readonly string[]) => rowpostHere([...args, "--database", place.url, "--layout", file]);
  expect(await run("migrate")).toMatchObject({ code: 0, stderr: "" });
  const published = await rowpost([
    ...["relay", "--once", "--broker", "stdout:", "--database", place.url, "--layout", file],
  ]);
  expect(published).toMatchObject({ code: 0, stdout: expect.stringContaining('"key":"42"') });
  expect(JSON.parse((await run("list", "--json")).stdout)).toMatchObject([
    { type: "user.joined", key: "42", state: "sent" },
  ]);
  expect(await run("show", "1")).toMatchObject({ code: 0, stdout: expect.stringContaining("users") });
  expect(await run("status")).toMatchObject({ code: 0 });
  // What else is said on the command line counts more.
  const other = await run("list", "--table", "app_evnt");
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining("app_evnt") });
});

test.each([
  ["[]", "must be an object"],
  ["{", "is not JSON"],
  ['{"tabel":"x"}', '"tabel" is not an option'],
  ['{"base":"oracle"}', "base must be default or t_local_message or message_table"],
  ['{"table":7}', "table must be a string, not a number"],
  ['{"columns":["id"]}', "columns must be an object, not an array"],
  ['{"columns":{"stat":"status"}}', 'columns: "stat" is not an option'],
  ['{"columns":{"state":5}}', "columns.state must be the name of a column"],
  ['{"columns":{"state":null}}', "columns.state"],
  ['{"columns":{"state":"a.b"}}', 'column state "a.b" is not a usable name'],
  ['{"states":{"waiting":0}}', 'states: "waiting" is not an option'],
  ['{"states":{"pending":3}}', "the states of a layout are six different whole numbers"],
  ['{"clock":"local"}', 'clock must be "utc" or "server", not local'],
  ['{"limits":{"topic":"64"}}', "limits.topic must be a number"],
  ['{"failReasonLength":-1}', "failReasonLength must be a number"],
])("a file that is wrong is told with its name and the field: %s", async (content, words) => {
  await writeFile(file, content);
  const { code, stderr } = await rowpostHere(["list", "--database", place.url, "--layout", file]);
  expect([code, stderr.split("\n").length, stderr]).toEqual([2, 2, expect.stringContaining(`--layout ${file}`)]);
  expect(stderr).toContain(words);
});

test("a name that is neither shipped nor a file is told", async () => {
  for (const [layout, words] of [
    ["t_message", "is not one of default, t_local_message, message_table, and no file"],
    ["./none.json", "cannot be read"],
  ] as const)
    expect(await rowpostHere(["list", "--database", place.url, "--layout", layout])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(words),
    });
});
