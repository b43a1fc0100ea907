/** The app over a server: the same journey, and a database that goes away under an open page. */
import type { Browser } from "playwright-core";
import { mysql } from "rowpost/mysql";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type CutOff, cutOff } from "../../rowpost/test/broker-kill/cut-by-proxy.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../../rowpost/test/services.ts";
import { type AppBench, findingsOf, openApp, startBrowser } from "./bench.ts";
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

  it("cancels a change of many messages behind its batch, and says what it has changed", async () => {
    const ids = await app.put("failed", 1_200, { topic: "many", reason: "HTTP_503: the cellar is flooded" });
    const page = await app.open("main/failures", "operator");
    const row = page.getByRole("row").filter({ hasText: "the cellar is flooded" });
    await row.getByRole("button", { name: "Retry all…" }).click();
    await page.getByRole("textbox", { name: "Reason" }).fill("the cellar is dry");
    const beside = mysql({ url: server.url });
    const holding = await beside.connect({ purpose: "tool" });
    const sql = (text: string) => ({ name: "hold", text, params: [] });
    const operation = page.getByRole("row").filter({ hasText: "the cellar is dry" });
    // In the second batch of three: it waits until the cancelling is written down.
    await holding.transaction(async (tx) => {
      await tx.run(sql(`SELECT id FROM local_message WHERE id = ${ids[700]} FOR UPDATE`));
      await page.getByRole("button", { name: "Start" }).click();
      await operation.getByText("500 of 1,200 changed").waitFor();
      await operation.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("textbox", { name: "Reason" }).fill("enough");
      expect(await findingsOf(page)).toEqual([]);
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).last().click();
      const told = "SELECT COUNT(*) AS n FROM local_message_audit WHERE action = 'operation cancel'";
      await expect.poll(async () => Number((await app.sql(told))[0]?.["n"])).toBe(1);
    });
    await holding.close();
    await beside.close();
    await operation.getByText("cancelled").waitFor();
    await operation.getByText("1,000 of 1,200 changed").waitFor();
    const states = "SELECT state, COUNT(*) AS n FROM local_message WHERE topic = 'many' GROUP BY state ORDER BY state";
    expect((await app.sql(states)).map((each) => [each["state"], each["n"]].map(Number))).toEqual([
      [0, 1_000],
      [3, 200],
    ]);
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
