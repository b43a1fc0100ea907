/** `rowpost queue search|show|recall|rewind|drop-month|delete-group|verify` on a SQLite file. */
import { createQueue } from "rowpost/queue";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type QueueFile, temporaryQueue } from "./command.ts";

let place: QueueFile;
let queue: QueueFile["queue"];

beforeEach(async () => {
  place = await temporaryQueue();
  ({ queue } = place);
});
afterEach(() => place.remove());

async function send(...args: readonly string[]): Promise<string> {
  return (await queue("send", "orders", ...args)).stdout.trim();
}

test("messages are found by key, header and id, and shown", async () => {
  await queue("create", "orders", "--partitions", "2", "--retention", "6");
  const first = await send('{"total":12}', "--key", "4711", "--type", "order.created", "--header", "trace=ab");
  await send('{"total":13}', "--key", "4712");
  const found = await queue("search", "orders", "--key", "4711");
  expect(found).toMatchObject({ code: 0, stderr: "" });
  expect(found.stdout).toMatch(
    new RegExp(`^ID .*\\n${first} .* order\\.created +4711\\n1 message; searched \\d+, \\d+;`),
  );
  const byHeader = await queue("search", "orders", "--header", "trace=ab", "--from", "2h", "--json");
  expect(JSON.parse(byHeader.stdout)).toMatchObject({ complete: true, stopped: "end", messages: [{ id: first }] });
  expect((await queue("search", "orders", "--limit", "1")).stdout).toContain("go on with --before");
  const shown = await queue("show", "orders", first);
  expect(shown.stdout).toContain('{"total":12}');
  expect(JSON.parse((await queue("show", "orders", first, "--json")).stdout)).toMatchObject({
    id: first,
    key: "4711",
    body: { total: 12 },
    attempts: [],
    groups: [],
  });
  expect(await queue("show", "orders", "17")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("no message 17"),
  });
  for (const args of [
    ["show", "orders", "x1"],
    ["search", "other"],
    ["search", "orders", "--id", "1 OR 1"],
  ]) {
    const { code, stderr } = await queue(...args);
    expect(code).toBeGreaterThan(0);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  }
});

test("a message is recalled with a reason, and shown as it is then", async () => {
  await queue("create", "orders");
  const id = await send("1");
  expect(await queue("recall", "orders", id)).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason") });
  const recalled = await queue("recall", "orders", id, "--reason", "wrong price", "--author", "ann");
  expect(recalled).toMatchObject({ code: 0, stdout: expect.stringContaining("recalled by ann: wrong price") });
  const gone = await queue("recall", "orders", "17", "--reason", "x");
  expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining("no message 17") });
});

test("a group is rewound with a reason, and a month that is not over stays", async () => {
  await queue("create", "orders", "--retention", "6");
  await send("1");
  expect(await queue("rewind", "orders", "billing", "--to", "start")).toMatchObject({ code: 2 });
  expect(await queue("rewind", "orders", "billing", "--reason", "x")).toMatchObject({ code: 2 });
  const unknown = await queue("rewind", "orders", "billing", "--to", "start", "--reason", "x");
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('no consumer group "billing"') });
  expect((await queue("drop-month", "orders", "--past-retention")).stdout).toBe("no month is past the retention\n");
  expect(await queue("drop-month", "orders")).toMatchObject({ code: 2 });
  const gone = await queue("drop-month", "orders", "202101", "--reason", "x");
  expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining("it has no tables") });
});

test("what a group has passed without a record is told, with exit code 1", async () => {
  await queue("create", "orders");
  const ids = [];
  for (const body of ["1", "2", "3"]) ids.push((await queue("send", "orders", body)).stdout.trim());
  const database = sqlite({ file: place.file });
  const here = createQueue({ database });
  const consumer = await here.consume({ topic: "orders", group: "billing", logger: "silent", handler: () => {} });
  const lag = async (): Promise<number | undefined> => (await here.groups({ topic: "orders" }))[0]?.lag.count;
  await vi.waitUntil(async () => (await lag()) === 0, { timeout: 60_000, interval: 20 });
  await consumer.stop();
  await here.close();

  const whole = await queue("verify", "orders");
  expect(whole).toEqual({ code: 0, stderr: "", stdout: "looked at 3 messages of all groups; 0 without a record\n" });
  const session = await database.connect({ purpose: "tool" });
  const tables = "SELECT name FROM sqlite_master WHERE name LIKE 'orders_message_info_consumption_%' ORDER BY name";
  const { rows } = await session.run({ name: "tables", text: tables, params: [] });
  for (const { name } of rows) {
    const text = `DELETE FROM ${String(name)} WHERE message_id = ${ids[1]}`;
    await session.run({ name: "delete", text, params: [] });
  }
  await session.close();
  await database.close();
  const { code, stdout } = await queue("verify", "orders");
  expect(code).toBe(1);
  expect(stdout).toContain(`group billing, partition 0: 1 message without a record: ${ids[1]}\n`);
  const json = await queue("verify", "orders", "--group", "billing", "--json");
  expect(json.code).toBe(1);
  expect(JSON.parse(json.stdout)).toEqual({
    topic: "orders",
    messages: 3,
    problems: [{ group: "billing", partition: 0, fromId: ids[1], toId: ids[1], messages: 1 }],
  });
  expect(await queue("verify", "orders", "--group", "none")).toMatchObject({ code: 1 });
  expect(await queue("verify", "other")).toMatchObject({ code: 1 });
});

test("a group that nobody reads with is deleted, when that is said twice", async () => {
  await queue("create", "orders");
  expect(await queue("delete-group", "orders", "cache@web-7")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--yes is missing"),
  });
  expect(await queue("delete-group", "orders", "cache@web-7", "--yes")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no consumer group "cache@web-7"'),
  });
  const database = sqlite({ file: place.file });
  const queueHere = createQueue({ database });
  const puller = await queueHere.pull({ topic: "orders", group: "cache", broadcast: { instance: "web-7" } });
  expect(await queue("delete-group", "orders", "cache@web-7", "--yes")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("has a living member"),
  });
  await puller.stop();
  await queueHere.close();
  await database.close();
  expect((await queue("groups", "orders")).stdout).toContain("cache@web-7");
  expect(await queue("delete-group", "orders", "cache@web-7", "--yes")).toMatchObject({
    code: 0,
    stdout: "deleted group cache@web-7\n",
  });
  expect((await queue("groups", "orders")).stdout).toContain("no consumer groups");
});
