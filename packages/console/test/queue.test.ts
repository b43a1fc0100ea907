/** The queue's pages in Chromium: what people do to a group, without a document. */
import type { Queue } from "rowpost/queue";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type AppBench, findingsInEachLook, loaded, openQueueApp } from "./bench.ts";

let app: AppBench;
let queue: Queue;
let close: () => Promise<void>;
const topic = "orders";

beforeAll(async () => {
  ({ app, close, queue } = await openQueueApp());
});

afterAll(() => close());

/** Reads all that there is; the last one of each group of five is given up. */
async function consumeAll(group: string): Promise<void> {
  const consumer = await queue.consume({
    topic,
    group,
    logger: "silent",
    retry: { maxAttempts: 1 },
    handler: ({ body }) => {
      if (Number(body) % 5 === 4) throw new Error("no such customer");
    },
  });
  const isDone = async () => (await queue.groups({ topic, group }))[0]?.lag.count === 0;
  await vi.waitUntil(isDone, { timeout: 60_000, interval: 20 });
  await consumer.stop();
}

const nextIds = async (group: string) =>
  (await queue.groups({ topic, group }))[0]?.partitions.map(({ nextId }) => nextId);

describe("the queue's pages", () => {
  it("say how a message queue is made where there is none", async () => {
    const page = await app.open("main/queue");
    await page.getByText("This database has no message queue").waitFor();
    expect(await page.locator(".command code").innerText()).toContain("rowpost queue create");
    await queue.migrate();
    await queue.createTopic({ topic, partitions: 2 });
    for (let index = 0; index < 10; index += 1) await queue.append({ topic, key: `key-${index}`, body: index });
  });

  it("put a group back to yesterday noon on a preview, refuse what has moved since, and undo it", async () => {
    await consumeAll("billing");
    const before = await nextIds("billing");
    const page = await app.open("main/queue", "operator");
    await page.getByRole("link", { name: "orders" }).click();
    await page.getByRole("link", { name: "billing" }).click();
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Rewind…: billing" }).click();
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText("10 messages come again; 8 of them were consumed already.").waitFor();
    expect(await nextIds("billing")).toEqual(before);
    // Somebody else is faster.
    await queue.rewind({ topic, group: "billing", to: { back: 1 }, author: "ann", reason: "first" });
    await dialog.getByRole("textbox", { name: "Reason" }).fill("the invoices were wrong");
    await dialog.getByRole("button", { name: "Rewind", exact: true }).click();
    await dialog.getByText("it has moved on since").waitFor();
    await dialog.getByRole("button", { name: "Preview again" }).click();
    await expect.poll(() => dialog.locator(".problem").count()).toBe(0);
    const moved = await nextIds("billing");
    await dialog.getByRole("button", { name: "Rewind", exact: true }).click();
    await expect.poll(() => dialog.count()).toBe(0);
    expect(await nextIds("billing")).not.toEqual(moved);
    await page.getByRole("cell", { name: "the invoices were wrong" }).waitFor();
    await page.getByRole("button", { name: "Undo the last rewind…: billing" }).click();
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByRole("textbox", { name: "Reason" }).fill("it was the other group");
    await dialog.getByRole("button", { name: "Undo", exact: true }).click();
    await page.getByRole("cell", { name: "undo of 2" }).waitFor();
    expect(await nextIds("billing")).toEqual(moved);
  });

  it("pause and resume a group, and treat its dead letters one by one", async () => {
    await consumeAll("stock");
    const page = await app.open("main/queue?topic=orders&group=stock", "admin", { locale: "zh-CN" });
    const dialog = page.getByRole("dialog");
    const reason = dialog.getByRole("textbox", { name: "理由" });
    await page
      .getByRole("button", { name: "暂停…：stock" })
      .or(page.getByRole("button", { name: "暂停…: stock" }))
      .click();
    await reason.fill("盘点");
    await dialog.getByRole("button", { name: "暂停", exact: true }).click();
    await page.getByText("已暂停").first().waitFor();
    const letters = (await queue.deadLetters({ topic, group: "stock" })).letters.map(({ id }) => id);
    const [first = "", second = ""] = letters;
    expect(letters).toHaveLength(2);
    const row = (id: string) => page.getByRole("row").filter({ has: page.getByRole("link", { name: id }) });
    await row(first).getByRole("button", { name: "改后重投" }).click();
    await dialog.locator("textarea[name=body]").fill('{"total":13}');
    await reason.fill("金额写错");
    await dialog.getByRole("button", { name: "改后重投" }).click();
    await expect.poll(() => row(first).count()).toBe(0);
    await row(second).getByRole("button", { name: "丢弃" }).click();
    await reason.fill("订单已取消");
    await dialog.getByRole("button", { name: "丢弃" }).click();
    await page.getByText("没有符合条件的消息。").waitFor();
    expect((await queue.deadLetters({ topic, group: "stock" })).letters).toEqual([]);
  });

  it("find a message by its key, say which months were searched, and who consumed it", async () => {
    const page = await app.open("main/queue?topic=orders", "reader");
    await page.getByLabel("Business key").fill("key-3");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("1 shown").waitFor();
    expect(await page.locator(".told").innerText()).toMatch(/searched \d{4}-\d\d.*complete/);
    await page.locator("section").last().getByRole("row").last().getByRole("link").click();
    await page.getByRole("heading", { name: "key-3" }).waitFor();
    await page.getByRole("cell", { name: "billing" }).first().waitFor();
    expect(await page.getByRole("button", { name: "Show body and headers" }).isDisabled()).toBe(true);
  });

  it.each(["en-US", "zh-CN"])("have no serious finding of axe-core, and nothing too wide: %s", async (locale) => {
    const [id = ""] = await queue.append({ topic, key: "k".repeat(128), body: 4 });
    await consumeAll("billing");
    const found: string[] = [];
    const page = await app.open("main/queue", "admin", { locale });
    async function told(what: string): Promise<void> {
      found.push(...(await findingsInEachLook(page)).map((finding) => `${what}: ${finding}`));
    }
    for (const view of ["", `topic=${topic}`, `topic=${topic}&message=${id}`, `topic=${topic}&group=billing`]) {
      await page.goto(`${app.address}main/queue?${view}`);
      await loaded(page);
      await told(view);
    }
    await page.locator(".actions button").nth(1).click();
    await page.locator("dialog button[value=preview]").click();
    await page.locator(".plan-told").waitFor();
    await told("rewind");
    expect(found).toEqual([]);
    expect(app.complaints.all).toEqual([]);
  });
});
