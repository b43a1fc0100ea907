/** `rowpost queue` on a SQLite file. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { createQueue } from "rowpost/queue";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type QueueFile, rowpostHere, startRowpost, temporaryFile, temporaryQueue } from "./command.ts";

let place: QueueFile;
let queue: QueueFile["queue"];

beforeEach(async () => {
  place = await temporaryQueue();
  ({ queue } = place);
});
afterEach(() => place.remove());

async function json(...args: readonly string[]): Promise<unknown> {
  const { code, stdout, stderr } = await queue(...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("topics", () => {
  test("are made with the queue's tables, listed, altered and deleted", async () => {
    expect(await json("create", "orders", "--partitions", "2", "--retention", "6")).toEqual({
      created: true,
      topic: { topic: "orders", partitions: 2, keyedPartitions: 2, retentionMonths: 6 },
    });
    expect((await queue("create", "orders")).stdout).toContain("was there already");
    expect(await json("alter", "orders", "--partitions", "4", "--retention", "ever")).toEqual({
      topic: "orders",
      partitions: 4,
      keyedPartitions: 4,
      retentionMonths: null,
    });
    expect(await json("topics")).toMatchObject([{ topic: "orders", partitions: 4 }]);
    expect((await queue("topics")).stdout).toMatch(/^TOPIC +PARTITIONS[^\n]*\norders +4 +4 +ever\n$/);
    expect(await queue("delete", "orders")).toMatchObject({ code: 2 });
    expect(await json("delete", "orders", "--yes")).toEqual({ topic: "orders", deleted: true });
    expect((await queue("topics")).stdout).toBe("no topics\n");
    expect(await queue("delete", "orders", "--yes")).toMatchObject({ code: 1 });
  });

  test("that are not there, or tables that are not there, are one line and exit code 1", async () => {
    await queue("create", "orders");
    for (const args of [
      ["send", "other", "1"],
      ["tail", "other"],
      ["alter", "other"],
    ]) {
      const { code, stderr } = await queue(...args);
      expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('no topic "other"') });
      expect(stderr.trim().split("\n")).toHaveLength(1);
    }
    const empty = await temporaryFile();
    expect(await rowpostHere(["migrate", "--database", empty.url])).toMatchObject({ code: 0 });
    const { code, stderr } = await rowpostHere(["queue", "topics", "--database", empty.url]);
    expect(code).toBe(1);
    expect(stderr).toContain("`rowpost queue create TOPIC` makes them");
    await empty.remove();
  });
});

describe("send and tail", () => {
  test("a message with everything, and one for each line of a file", async () => {
    await queue("create", "orders");
    const options = ["--key", "4711", "--type", "order.created", "--ordering-key", "c1", "--header", "a=b=c"];
    const sent = (await json("send", "orders", '{"total":12}', ...options)) as { readonly ids: string[] };
    const file = join(place.file, "..", "lines.ndjson");
    await writeFile(file, '{"n":1}\n\n"二"\r\n3\n');
    expect((await queue("send", "orders", "--file", file, "--lines")).stdout).toMatch(
      /^appended 3 messages: \d+ to \d+\n$/,
    );
    expect((await queue("send", "orders", "plain", "--content-type", "text/plain")).stdout).toMatch(/^\d+\n$/);
    const { code, stdout } = await queue("tail", "orders", "--from", "start", "--limit", "5", "--json");
    expect(code).toBe(0);
    const shown = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { readonly id: string; readonly body: unknown });
    expect(shown.map(({ body }) => body)).toEqual([{ total: 12 }, { n: 1 }, "二", 3, "plain"]);
    expect(shown[0]).toMatchObject({
      topic: "orders",
      id: sent.ids[0],
      key: "4711",
      type: "order.created",
      orderingKey: "c1",
      headers: { a: "b=c" },
    });
    const [, second] = shown;
    const { stdout: text } = await queue("tail", "orders", "--from", second?.id ?? "", "--limit", "1");
    expect(text).toMatch(/^\d+ p0 \d{4}-\S+ \{"n":1\}\n$/);
  });

  test("follows from now on, and ends with Ctrl-C and exit code 0", async () => {
    await queue("create", "orders");
    await queue("send", "orders", '"before"');
    const tail = startRowpost(["queue", "tail", "orders", "--database", place.url]);
    // It begins at the end, wherever that is when it gets there: so more come until one is shown.
    let count = 0;
    while (!tail.stdout().includes("after")) {
      expect(await queue("send", "orders", `"after ${count}"`)).toMatchObject({ code: 0, stderr: "" });
      count += 1;
      // SQLite answers within the call: without a turn of the event loop the output is never read.
      await setImmediate();
    }
    tail.child.kill("SIGINT");
    expect(await tail.finished).toMatchObject({ code: 0, signal: null, stderr: "" });
    expect(tail.stdout()).not.toContain("before");
  });
});

describe("groups", () => {
  test("are shown, paused, and their dead letters redelivered, edited, discarded and skipped", async () => {
    await queue("create", "orders");
    await queue("send", "orders", "1", "--key", "a");
    await queue("send", "orders", "2", "--key", "b");
    expect((await queue("groups", "orders")).stdout).toBe("topic orders has no consumer groups\n");
    const database = sqlite({ file: place.file });
    const queueHere = createQueue({ database });
    const consumer = await queueHere.consume({
      topic: "orders",
      group: "billing",
      logger: "silent",
      retry: { maxAttempts: 1 },
      handler: ({ body }) => {
        if (body !== 3) throw new Error("no stock");
      },
    });
    const dead = async (): Promise<readonly { readonly id: string }[]> =>
      ((await json("dead", "orders", "billing", "--error", "stock")) as { letters: { id: string }[] }).letters;
    await vi.waitUntil(async () => (await dead()).length === 2, { timeout: 60_000, interval: 20 });
    await consumer.stop();
    const [first, second] = await dead();
    expect((await queue("groups", "orders")).stdout).toMatch(/billing +all +0 +0 +2[\s\S]*nobody/);
    expect((await queue("pause", "orders", "billing", "--reason", "prices")).stdout).toBe("paused billing\n");
    expect(await json("groups", "orders", "billing")).toMatchObject([{ paused: { reason: "prices" } }]);
    expect((await queue("resume", "orders", "billing")).stdout).toBe("resumed billing\n");
    expect((await queue("resume", "orders", "billing")).stdout).toBe("billing is not paused\n");
    expect((await queue("edit", "orders", "billing", first?.id ?? "", "--body", "3")).stdout).toMatch(
      /^appended \d+ for/,
    );
    expect(await queue("edit", "orders", "billing", first?.id ?? "", "--body", "3")).toMatchObject({ code: 1 });
    const redeliver = ["redeliver", "orders", "billing", "--all", "--reason", "restocked", "--author", "wang"];
    expect((await queue(...redeliver)).stdout).toBe("redelivered 1 message\n");
    expect((await queue("show", "orders", second?.id ?? "")).stdout).toMatch(/ redelivered .*wang: restocked/);
    expect((await queue("dead", "orders", "billing")).stdout).toBe("none\n");
    expect((await queue("dead", "orders", "billing", "--state", "waiting")).stdout).toContain(second?.id);
    expect((await queue("discard", "orders", "billing", "--id", second?.id ?? "")).stdout).toContain("is waiting");
    expect((await queue("skip", "orders", "billing", second?.id ?? "")).stdout).toBe(`skipped ${second?.id}\n`);
    expect(await queue("skip", "orders", "billing", second?.id ?? "")).toMatchObject({ code: 1 });
    expect(await queue("pause", "orders", "nobody")).toMatchObject({ code: 1 });
    await queueHere.close();
    await database.close();
  });
});
