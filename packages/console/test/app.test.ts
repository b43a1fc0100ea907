/** The app in Chromium, over a SQLite file: what people do. */
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createConsole } from "../../server/src/console.ts";
import { seedAlerts } from "../../server/test/seed-alerts.ts";
import { type AppBench, findingsInEachLook, findingsOf, loaded, openFileApp } from "./bench.ts";
import { findByKeyAndRetry } from "./journeys.ts";
import { PAGES } from "./pages.ts";

/** One that takes what it gets. */
const CHANNELS = {
  names: ["team"],
  test: () => Promise.resolve({ at: new Date().toISOString(), ok: true, answer: "ok" }),
};

let browser: Browser;
let app: AppBench;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ app, browser, close } = await openFileApp({ alertChannels: CHANNELS }));
});

afterAll(() => close());

describe("the console's app", () => {
  it("leads a newcomer by the first link to a message by its key, why it is not sent, and its retry", async () => {
    await findByKeyAndRetry(app);
    expect(app.complaints.all).toEqual([]);
  });

  it("tells the later of two operators what the message is now, and lets them decide again", async () => {
    const [id = ""] = await app.put("failed", 1, { topic: "two", reason: "HTTP_500: no" });
    const [first, second] = await Promise.all([
      app.open(`main/messages/${id}`, "operator"),
      app.open(`main/messages/${id}`, "operator"),
    ]);
    await second.getByRole("button", { name: "Retry" }).click();
    await first.getByRole("button", { name: "Suspend" }).click();
    await first.getByRole("textbox", { name: "Reason" }).fill("let me look first");
    await first.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
    await first.locator(".message-head .state-suspended").waitFor();
    await second.getByRole("textbox", { name: "Reason" }).fill("the upstream is back");
    await second.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
    await second.getByText("It has changed meanwhile").waitFor();
    expect(await second.locator("dialog .state").innerText()).toContain("suspended");
    // A suspended message is not retried but resumed: there is nothing to decide again.
    expect(await second.getByRole("button", { name: "Do it all the same" }).count()).toBe(0);
    expect(await second.getByRole("textbox", { name: "Reason" }).inputValue()).toBe("the upstream is back");
    expect(await app.sql(`SELECT state FROM local_message WHERE id = ${id}`)).toEqual([{ state: 5 }]);
  });

  it("shows a reader what is forbidden and why, and says which role a page needs", async () => {
    const [id = ""] = await app.put("failed", 1, { topic: "reader", reason: "HTTP_500: no" });
    const page = await app.open(`main/messages/${id}`, "reader");
    const retry = page.getByRole("button", { name: "Retry" });
    await retry.waitFor();
    expect(await retry.isDisabled()).toBe(true);
    expect(await page.locator(".actions").innerText()).toContain("needs the role operator");
    expect(await page.getByRole("button", { name: "Show body and headers" }).isDisabled()).toBe(true);
  });

  it("keeps the address when a session ends, and goes on there after the login", async () => {
    await app.put("failed", 1, { topic: "ended", reason: "HTTP_500: no" });
    const path = "main/messages?topic=ended&state=failed";
    const page = await app.open(path, "operator");
    await page.getByText("1 found").waitFor();
    await page.context().clearCookies();
    await page.getByRole("button", { name: "Search", exact: true }).waitFor();
    await page.getByRole("link", { name: "Topics", exact: true }).click();
    await page.getByText("Your session has ended").waitFor();
    expect(page.url()).toBe(`${app.address}main/topics`);
    await page.goBack();
    expect(page.url()).toBe(app.address + path);
    await page.getByLabel("Name").fill("operator");
    await page.getByLabel("Password").fill("correct horse battery");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("1 found").waitFor();
    expect(page.url()).toBe(app.address + path);
  });

  it("explains what it searched when nothing is found, and offers what to try", async () => {
    const page = await app.open("main/messages?topic=orders&key=nobody-has-this&in=live");
    await page.getByText("No message matches").waitFor();
    expect(await page.locator(".empty").innerText()).toContain("All of this was searched: message table.");
    await page.getByRole("link", { name: "Search the archive too" }).click();
    await page.getByText("All of this was searched: message table + archive.").waitFor();
    await page.getByRole("link", { name: "Without key:nobody-has-this" }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get("key")).toBe(null);
    await page.getByLabel("Filter").fill("after:yesterday");
    await page.keyboard.press("Enter");
    await page.getByText("“yesterday”").first().waitFor();
    // A key may hold a colon.
    await page.getByLabel("Filter").fill("topic:orders invoice:4711");
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).searchParams.get("key")).toBe("invoice:4711");
  });

  it("is worked by keys alone, where no field has the focus", async () => {
    const ids = await app.put("failed", 3, { topic: "keys", reason: "HTTP_500: no" });
    const page = await app.open("");
    await loaded(page);
    // Here the address names no table yet.
    await page.keyboard.press("g");
    await page.keyboard.press("m");
    await page.waitForURL("**/main/messages");
    await loaded(page);
    await page.keyboard.press("/");
    await page.keyboard.type("topic:keys state:发送失败");
    await page.keyboard.press("Enter");
    await page.getByText("3 found").waitFor();
    await page.locator("h1").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/main/messages/${ids[1]}`);
    await page.getByRole("link", { name: "Next", exact: true }).waitFor();
    await page.keyboard.press("]");
    await page.waitForURL(`**/main/messages/${ids[0]}`);
    await page.keyboard.press("p");
    await page.getByRole("button", { name: "Go on" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("f");
    await page.waitForURL("**/main/failures");
    // What was never shown is asked for although nothing is asked for again.
    await page.getByText("HTTP_500").first().waitFor();
    await page.getByRole("link", { name: "Skip to content" }).press("Enter");
    expect(new URL(page.url()).pathname).toBe("/main/failures");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  });

  it("holds a topic back, and lets it go", async () => {
    await app.put("pending", 1, { topic: "stock" });
    const page = await app.open("main/topics", "operator");
    const row = page.getByRole("row").filter({ hasText: "stock" });
    await row.getByRole("button", { name: "Suspend…" }).click();
    await page.getByRole("textbox", { name: "Reason" }).fill("stock count");
    await page.getByRole("combobox", { name: "Ends" }).selectOption("hour");
    await page.getByRole("dialog").getByRole("button", { name: "Suspend…" }).click();
    await row.getByText("stock count").waitFor();
    await row.getByRole("button", { name: "Resume…" }).click();
    await page.getByRole("textbox", { name: "Reason" }).fill("counted");
    await page.getByRole("dialog").getByRole("button", { name: "Resume…" }).click();
    await row.getByRole("button", { name: "Suspend…" }).waitFor();
    expect(await app.sql("SELECT COUNT(*) AS n FROM local_message_suspension")).toEqual([{ n: 0 }]);
  });

  it("retries all of one cause on a preview, and says how far it came", async () => {
    await app.put("failed", 1_200, { topic: "many", reason: "HTTP_503: the cellar is flooded" });
    const page = await app.open("main/failures", "operator");
    const row = page.getByRole("row").filter({ hasText: "the cellar is flooded" });
    await row.getByRole("button", { name: "Retry all…" }).click();
    await page.getByText("1,200 messages will be changed").waitFor();
    await page.getByRole("textbox", { name: "Reason" }).fill("the cellar is dry");
    expect(await findingsOf(page)).toEqual([]);
    await page.getByRole("button", { name: "Start" }).click();
    await page.waitForURL("**/main/operations");
    const operation = page.getByRole("row").filter({ hasText: "the cellar is dry" });
    await operation.getByText("1,200 of 1,200 changed").waitFor();
    await operation.getByText("done").waitFor();
    expect(await operation.getByRole("button").count()).toBe(0);
    const states = "SELECT state, COUNT(*) AS n FROM local_message WHERE topic = 'many' GROUP BY state";
    expect(await app.sql(states)).toEqual([{ state: 0, n: 1_200 }]);
    // Only the audit knows of a change whose process has died.
    await page.getByRole("link", { name: "What has begun" }).click();
    await page.waitForURL("**/main/audit?result=begun");
    await page.getByRole("row").filter({ hasText: "the cellar is dry" }).getByText("many retry").waitFor();
    const reader = await app.open("main/failures", "reader");
    const forbidden = reader.getByRole("button", { name: "Retry all…" }).first();
    await forbidden.waitFor();
    expect([await forbidden.isDisabled(), await forbidden.getAttribute("title")]).toEqual([
      true,
      "needs the role operator",
    ]);
  });

  it("says that nobody evaluates alerts; shows them, silences one and ends that, and tries a channel", async () => {
    const page = await app.open("main/alerts", "admin");
    await page.getByText("Nobody evaluates alerts").waitFor();
    await seedAlerts(app.database);
    await page.reload();
    const item = page.locator(".findings li").filter({ hasText: "12 failed in topic orders" });
    await item.waitFor();
    expect(await page.locator(".findings li").first().innerText()).toContain("is due for");
    await page.getByRole("link", { name: "Alerts 2" }).waitFor();
    await item.getByRole("button", { name: "Silence…" }).click();
    await page.getByRole("textbox", { name: "Reason" }).fill("ticket 7");
    await page.getByRole("dialog").getByRole("button", { name: "Add a silence…" }).click();
    await item.getByText("silenced", { exact: true }).waitFor();
    await page.getByRole("row", { name: "Failed messages · orders" }).getByRole("button", { name: "End…" }).click();
    await page.getByRole("textbox", { name: "Reason" }).fill("mended");
    expect(await findingsOf(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "End…" }).click();
    await page.getByText("Nothing is silenced").waitFor();
    expect(await item.getByText("silenced", { exact: true }).count()).toBe(0);
    await page.getByRole("button", { name: "Send a test: team" }).click();
    await page.getByRole("row").filter({ hasText: "team" }).getByText("taken", { exact: true }).waitFor();
    const actions = "SELECT action, reason FROM local_message_audit ORDER BY id DESC LIMIT 3";
    expect((await app.sql(actions)).map(({ action }) => action)).toEqual(["alert test", "silence end", "silence"]);
    await item.getByRole("link", { name: "Look at it" }).click();
    await page.waitForURL("**/main/messages?state=failed&topic=orders");
  });

  it.each(["takes off", "keeps"])("works below a path, behind a proxy that %s the prefix", async (what) => {
    const [id = ""] = await app.put("failed", 1, { topic: "below", reason: "HTTP_500: no" });
    const below = createConsole({
      sources: [{ name: "main", database: app.database }],
      authorize: () => Promise.resolve({ name: "ann", role: "operator" as const }),
      basePath: "/ops",
    });
    const inner = createServer((...both) => below.node(...both));
    const port = await portOf(inner);
    const outer = createServer((asked, answer) => {
      const path = what === "keeps" ? asked.url : asked.url?.replace(/^\/ops/, "");
      const { headers, method } = asked;
      const passed = request({ port, path, method, headers: { ...headers, host: `127.0.0.1:${port}` } }, (response) => {
        answer.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(answer);
      });
      asked.pipe(passed);
    });
    const context = await browser.newContext({ locale: "en-US" });
    try {
      context.setDefaultTimeout(120_000);
      const page = await context.newPage();
      const address = `http://127.0.0.1:${await portOf(outer)}/ops/`;
      await page.goto(`${address}main/messages/${id}`);
      await page.getByRole("button", { name: "Retry" }).click();
      await page.getByRole("textbox", { name: "Reason" }).fill("behind a proxy");
      await page.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
      await page.locator(".message-head .state-pending").waitFor();
      await page.getByRole("navigation").getByRole("link", { name: "Messages", exact: true }).click();
      await page.getByRole("row").filter({ hasText: "below" }).first().waitFor();
      expect(page.url()).toBe(`${address}main/messages`);
      await page.reload();
      await page.getByRole("row").filter({ hasText: "below" }).first().waitFor();
    } finally {
      await context.close();
      for (const server of [outer, inner]) {
        server.closeAllConnections();
        server.close();
      }
      await below.close();
    }
  });

  it.each(["en-US", "zh-CN"])("has no serious finding of axe-core, and nothing too wide: %s", async (locale) => {
    const [id = ""] = await app.put("failed", 1, { topic: "axe", reason: "HTTP_500: no" });
    const found: string[] = [];
    const page = await app.open("main/overview", "admin", { locale });
    for (const path of [...PAGES, `messages/${id}`, "messages?topic=nobody", "messages/4711"]) {
      await page.goto(`${app.address}main/${path}`);
      await loaded(page);
      found.push(...(await findingsInEachLook(page)).map((finding) => `${path}: ${finding}`));
    }
    expect(found).toEqual([]);
  });
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
