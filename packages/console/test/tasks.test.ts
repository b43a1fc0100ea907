/**
 * What a stranger is asked to do without a document: from the overview, by what the pages say, with
 * each click, choice and filled field counted.
 */
import type { Locator, Page } from "playwright-core";
import type { Queue } from "rowpost/queue";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type AppBench, openQueueApp } from "./bench.ts";

let app: AppBench;
let queue: Queue;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ app, close, queue } = await openQueueApp());
});

afterAll(() => close());

/** Somebody who counts. */
function handsOn(page: Page) {
  let clicks = 0;
  let fields = 0;
  return {
    page,
    dialog: page.getByRole("dialog"),
    click: async (what: Locator): Promise<void> => {
      clicks += 1;
      await what.click();
    },
    fill: async (what: Locator, text: string): Promise<void> => {
      fields += 1;
      await what.fill(text);
    },
    choose: async (what: Locator, option: string): Promise<void> => {
      clicks += 1;
      await what.selectOption(option);
    },
    menu: (name: string): Locator => page.getByRole("navigation").getByRole("link", { name }),
    done: (): { readonly clicks: number; readonly fields: number } => ({ clicks, fields }),
  };
}

async function openOverview(user: "operator" | "reader" = "operator") {
  const page = await app.open("", user);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  return handsOn(page);
}

describe("without a document", () => {
  it("where is order 4711, why is it not sent, and who changed it: one field", async () => {
    const [id = ""] = await app.put("failed", 1, { topic: "orders", reason: "HTTP_422: no such currency" });
    await app.sql(`UPDATE local_message SET message_key = '4711' WHERE id = ${id}`);
    const admin = app.database.messageAdmin({ layout: app.database.defaultLayout });
    const action = { author: "wang", reason: "the customer has called" };
    await admin.suspend({ filter: { ids: [id] }, action, limit: 1 });
    await admin.close();
    const { done, fill, page } = await openOverview("reader");
    await fill(page.getByRole("searchbox"), "4711");
    await page.keyboard.press("Enter");
    const why = page.getByRole("region", { name: "Why" });
    await why.getByText("It is suspended.").waitFor();
    expect(await why.innerText()).toContain("HTTP_422: no such currency");
    const change = page.getByRole("row").filter({ hasText: "the customer has called" });
    expect(await change.innerText()).toMatch(/wang\s+suspend/);
    expect(done()).toEqual({ clicks: 0, fields: 1 });
  });

  it("retry everything that failed because of one cause: three clicks", async () => {
    await app.put("failed", 30, { topic: "orders", reason: "HTTP_503: upstream unavailable" });
    await app.put("failed", 5, { topic: "orders", reason: "HTTP_404: no such shop" });
    const { click, dialog, done, fill, menu, page } = await openOverview();
    await click(menu("Failures"));
    const cause = page.getByRole("row").filter({ hasText: "upstream unavailable" });
    await click(cause.getByRole("button", { name: "Retry all…" }));
    await fill(dialog.getByRole("textbox", { name: "Reason" }), "the upstream is back");
    await click(dialog.getByRole("button", { name: "Start" }));
    await page.getByRole("row").filter({ hasText: "the upstream is back" }).getByText("30 of 30").waitFor();
    expect(await app.sql("SELECT COUNT(*) AS n FROM local_message WHERE state = 3")).toEqual([{ n: 5 }]);
    expect(done()).toEqual({ clicks: 3, fields: 1 });
  });

  it("stop one topic for an hour: four clicks", async () => {
    await app.put("pending", 1, { topic: "stock" });
    const { choose, click, dialog, done, fill, menu, page } = await openOverview();
    await click(menu("Topics"));
    const row = page.getByRole("row").filter({ hasText: "stock" });
    await click(row.getByRole("button", { name: "Suspend…" }));
    await fill(dialog.getByRole("textbox", { name: "Reason" }), "stock count");
    await choose(dialog.getByRole("combobox", { name: "Ends" }), "hour");
    await click(dialog.getByRole("button", { name: "Suspend…" }));
    await row.getByText("stock count").waitFor();
    const [rule] = await app.sql(
      "SELECT (julianday(ends_at) - julianday('now')) * 1440 AS minutes FROM local_message_suspension WHERE value = 'stock'",
    );
    expect(Math.round(Number(rule?.["minutes"]))).toBeLessThanOrEqual(60);
    expect(Number(rule?.["minutes"])).toBeGreaterThan(45);
    expect(done()).toEqual({ clicks: 4, fields: 1 });
  });

  it("put a group back to yesterday noon, and undo it: nine clicks", async () => {
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 1 });
    await queue.append([1, 2, 3].map((body) => ({ topic: "orders", body })));
    const consumer = await queue.consume({
      topic: "orders",
      group: "billing",
      logger: "silent",
      handler: () => undefined,
    });
    const [before] = await vi.waitUntil(
      async () => {
        const groups = await queue.groups({ topic: "orders", group: "billing" });
        return groups[0]?.lag.count === 0 && groups;
      },
      { timeout: 60_000, interval: 20 },
    );
    await consumer.stop();
    const { click, dialog, done, fill, menu, page } = await openOverview();
    await click(menu("Queue"));
    await click(page.getByRole("link", { name: "orders" }));
    await click(page.getByRole("link", { name: "billing" }));
    await click(page.getByRole("button", { name: "Rewind…: billing" }));
    // Yesterday noon is what the dialog proposes.
    await click(dialog.getByRole("button", { name: "Preview" }));
    await fill(dialog.getByRole("textbox", { name: "Reason" }), "the prices were wrong");
    await click(dialog.getByRole("button", { name: "Rewind", exact: true }));
    await page.getByRole("cell", { name: "the prices were wrong" }).waitFor();
    await click(page.getByRole("button", { name: "Undo the last rewind…: billing" }));
    await click(dialog.getByRole("button", { name: "Preview" }));
    await fill(dialog.getByRole("textbox", { name: "Reason" }), "they were right");
    await click(dialog.getByRole("button", { name: "Undo", exact: true }));
    await page.getByRole("cell", { name: "they were right" }).waitFor();
    const [after] = await queue.groups({ topic: "orders", group: "billing" });
    expect(after?.partitions.map(({ nextId }) => nextId)).toEqual(before?.partitions.map(({ nextId }) => nextId));
    expect(done()).toEqual({ clicks: 9, fields: 2 });
  });
});
