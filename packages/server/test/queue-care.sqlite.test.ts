/** `rowpost queue search|show|rewind|drop-month` on a SQLite file. */
import { afterEach, beforeEach, expect, test } from "vitest";
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
    ...{ id: first, key: "4711", body: { total: 12 }, attempts: [], groups: [] },
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
