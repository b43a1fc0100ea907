/** What a newcomer does; the same on every database. */
import { expect } from "vitest";
import type { AppBench } from "./bench.ts";

/** First link -> find by key -> why -> retry -> the state has changed, by whom and why. */
export async function findByKeyAndRetry(app: AppBench): Promise<void> {
  const [id = ""] = await app.put("failed", 1, { topic: "orders", reason: "HTTP_503: upstream unavailable" });
  const [row] = await app.sql(`SELECT message_key FROM local_message WHERE id = ${id}`);
  const page = await app.openStranger(`#t=${app.link.token}`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  expect(page.url()).not.toContain(app.link.token);
  await page.getByRole("heading", { name: "No relay has ever been seen here" }).waitFor();
  await page.getByRole("searchbox").fill(String(row?.["message_key"]));
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/main/messages/${id}`);
  const why = page.getByRole("region", { name: "Why" });
  await why.waitFor();
  expect(await why.innerText()).toContain("It failed. Only a person brings it back.");
  expect(await why.innerText()).toContain("HTTP_503: upstream unavailable");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("textbox", { name: "Reason" }).fill("the upstream is back");
  await page.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
  await page.locator(".message-head .state-pending").waitFor();
  await page.getByRole("cell", { name: "the upstream is back" }).waitFor();
  expect(await why.innerText()).toContain("No relay runs.");
  expect(await app.sql(`SELECT state, retry_count FROM local_message WHERE id = ${id}`)).toEqual([
    { state: 0, retry_count: 0 },
  ]);
  const again = await app.openStranger(`#t=${app.link.token}`);
  await again.getByRole("alert").waitFor();
  expect(await again.getByRole("heading", { name: "Overview" }).count()).toBe(0);
}
