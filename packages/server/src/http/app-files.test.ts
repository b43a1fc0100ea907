import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, expect, it } from "vitest";
import { createAppFiles } from "./app-files.ts";

const parent = mkdtempSync(join(tmpdir(), "rowpost-app-"));
const folder = join(parent, "console");
mkdirSync(join(folder, "assets"), { recursive: true });
writeFileSync(join(parent, "secret.txt"), "secret");
writeFileSync(join(folder, "index.html"), "<!doctype html><html><head><title>x</title></head></html>");
writeFileSync(join(folder, "assets", "a-1b2c.js"), "export {};".repeat(100));
afterAll(() => rmSync(parent, { recursive: true }));

const page = { accept: "text/html,*/*" };

function get(path: string, headers: Readonly<Record<string, string>> = {}, basePath = "/"): Response {
  const request = new Request(`http://x${path}`, { headers });
  return createAppFiles(basePath, folder)(request, new URL(request.url).pathname);
}

it("serves the app's page for every address of the app, with the base of its path", async () => {
  for (const path of ["/", "/s/main/messages", "/m/main/order.created/20261121-0042"]) {
    expect(await get(path, page, "/ops").text()).toContain('<head><base href="/ops/">');
  }
  expect(await get("/", page).text()).toContain('<base href="/">');
  expect(get("/", page).headers.get("cache-control")).toBe("no-cache");
});

it("serves hashed files for good, compressed where that is understood, and not again where it is known", async () => {
  const whole = get("/assets/a-1b2c.js");
  expect(whole.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  expect(whole.headers.get("cache-control")).toContain("immutable");
  const small = get("/assets/a-1b2c.js", { "accept-encoding": "gzip, br" });
  expect(gunzipSync(Buffer.from(await small.arrayBuffer())).toString()).toBe(await whole.text());
  expect(get("/assets/a-1b2c.js", { "if-none-match": whole.headers.get("etag") ?? "" }).status).toBe(304);
});

it("finds nothing outside its folder, however it is spelled", () => {
  const dots = ["..", "%2e%2e", ".%2e", "%252e%252e", "..%2f", "..%5c", "..\\", "%c0%ae%c0%ae", "....//", "..;"];
  const heads = ["/", "/assets/", "/assets/../", "//", "/%2f", "/./", "/assets/a-1b2c.js/"];
  const tails = ["secret.txt", "/secret.txt", "console/../secret.txt", "assets/%00", "index.html%00.js", "etc/passwd"];
  const paths = heads.flatMap((head) => dots.flatMap((dot) => tails.map((tail) => `${head}${dot}/${tail}`)));
  expect(paths.length).toBeGreaterThan(400);
  for (const path of paths) expect([path, get(path).status]).toEqual([path, 404]);
});
