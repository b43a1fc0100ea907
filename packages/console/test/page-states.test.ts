/** Each page with nothing in it, while it loads, and when that failed: axe-core, and its width. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type AppBench, findingsInEachLook, loaded, openFileApp } from "./bench.ts";
import { PAGES } from "./pages.ts";

let app: AppBench;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ app, close } = await openFileApp());
});

afterAll(() => close());

/** Goes to each page and to what is there, and returns what is wrong. */
async function findings(page: Page, there: (page: Page) => Promise<void>): Promise<string[]> {
  const found: string[] = [];
  for (const path of [...PAGES, "messages/4711"]) {
    await page.goto(`${app.address}main/${path}`);
    await there(page);
    found.push(...(await findingsInEachLook(page)).map((finding) => `${path}: ${finding}`));
  }
  return found;
}

it.each(["en-US", "zh-CN"])("empty: %s", async (locale) => {
  const page = await app.open("main/overview", "admin", { locale });
  expect(await findings(page, loaded)).toEqual([]);
});

// What stands there then is one component for all pages, so one language each will do.
it("loading", async () => {
  const page = await app.open("main/overview", "admin", { locale: "zh-CN" });
  await page.route("**/api/v1/s/**", () => undefined);
  expect(await findings(page, (one) => one.locator(".loading").first().waitFor())).toEqual([]);
});

it("failed", async () => {
  const page = await app.open("main/overview", "admin", { locale: "en-US" });
  const body = JSON.stringify({ title: "The database does not answer", status: 503, code: "database-away" });
  const answer = { status: 503, contentType: "application/problem+json", body };
  await page.route("**/api/v1/s/**", (route) => route.fulfill(answer));
  expect(await findings(page, (one) => one.locator(".problem").first().waitFor())).toEqual([]);
});
