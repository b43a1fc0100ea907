/** The app over a server: the same journey, and a database that goes away under an open page. */
import type { Browser } from "playwright-core";
import { mysql } from "rowpost/mysql";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type CutOff, cutOff } from "../../rowpost/test/broker-kill/cut-by-proxy.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../../rowpost/test/services.ts";
import { type AppBench, openApp, startBrowser } from "./bench.ts";
import { findByKeyAndRetry } from "./journeys.ts";

describeWithService(["mariadb"], "the console's app", ({ name }) => {
  let browser: Browser;
  let server: TestDatabase;
  let proxy: CutOff;
  let app: AppBench;

  beforeAll(async () => {
    [browser, server] = await Promise.all([startBrowser(), createTestDatabase(name)]);
    proxy = await cutOff(server.url, 3306);
    app = await openApp(browser, mysql({ url: proxy.url }));
  });

  afterAll(async () => {
    await app.close();
    await Promise.all([browser.close(), proxy.close()]);
    await server.drop();
  });

  it("leads a newcomer by the first link to a message by its key, why it is not sent, and its retry", async () => {
    await findByKeyAndRetry(app);
    expect(app.complaints.all).toEqual([]);
  });

  it("keeps what was known when the database goes away, with no way to act on it, and goes on when it is back", async () => {
    const [id = ""] = await app.put("failed", 1, { topic: "away", reason: "HTTP_500: no" });
    const page = await app.open(`main/messages/${id}`, "operator");
    const retry = page.getByRole("button", { name: "Retry" });
    await retry.waitFor();
    await proxy.takeAway();
    await page.locator(".stale").waitFor();
    await page.getByText("nothing can be changed now").waitFor();
    await page.getByText("database away").waitFor();
    expect(await page.locator(".message-head .state").innerText()).toContain("failed");
    expect(await retry.isDisabled()).toBe(true);
    await proxy.bringBack();
    await page.locator(".stale").waitFor({ state: "detached" });
    await expect.poll(() => retry.isDisabled()).toBe(false);
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(app.complaints.all).toEqual([]);
  });
});
