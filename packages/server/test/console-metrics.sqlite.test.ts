/** `/metrics`, `/livez` and `/readyz` of the console: what they say, and to whom. */
import { createServer } from "node:http";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { randomSecret, sha256 } from "../src/access/secrets.ts";
import { createConsole } from "../src/console.ts";
import { listen } from "../src/http-listen.ts";
import { temporaryFile } from "./command.ts";
import { type ConsoleBench, openConsole } from "./console.ts";

let bench: ConsoleBench;
let place: Awaited<ReturnType<typeof temporaryFile>>;
const scraper = `rp_${randomSecret()}`;
const closers: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  place = await temporaryFile();
  bench = await openConsole(sqlite({ file: place.file }));
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await bench.close();
  await place.remove();
});

/** On a real socket, for which alone a peer is known. */
async function served(made: ConsoleBench["made"]): Promise<string> {
  const listening = await listen(
    createServer((request, response) => made.node(request, response)),
    { host: "127.0.0.1", port: 0 },
    "--listen",
  );
  closers.push(() => listening.close());
  return `http://${listening.address}`;
}

function consoleWith(options: Partial<Parameters<typeof createConsole>[0]>): ConsoleBench["made"] {
  const tokens = [{ name: "prometheus", role: "metrics" as const, hash: sha256(scraper) }];
  const sources = [{ name: "main", database: bench.database }];
  const made = createConsole({ sources, access: { tokens }, ...options });
  closers.push(() => made.close());
  return made;
}

test("it tells requests by route, searches, what the audit is about, relays and operations", async () => {
  const [id = ""] = await bench.put("failed", 3);
  const token = bench.tokens.operator;
  await bench.ask("messages", { token, query: { limit: "2" } });
  await bench.ask("message", { token, params: { id } });
  await bench.ask("message", { token, params: { id: "999" } });
  await bench.ask("suspend", { token, params: { id }, headers: { "if-match": '"77"' }, body: { reason: "late" } });
  await bench.ask("archive", { token, params: { id }, headers: { "if-match": '"1"' }, body: { reason: "no" } });
  const text = await (await fetch(`${await served(bench.made)}/metrics`)).text();
  const route = "/s/:source/messages/:id";
  for (const line of [
    `rowpost_http_requests_total{route="${route}",method="GET",status="200"} 1`,
    `rowpost_http_requests_total{route="${route}",method="GET",status="404"} 1`,
    `rowpost_http_duration_ms_count{route="${route}"} 2`,
    `rowpost_searches_total{stopped="limit"} 1`,
    `rowpost_audit_total{action="suspend",result="conflict"} 1`,
    `rowpost_audit_total{action="archive",result="denied"} 1`,
    `rowpost_table_readable{source="main"} 1`,
    `rowpost_relays_alive{source="main"} 0`,
    `rowpost_shards_unowned{source="main"} 0`,
  ])
    expect(text.split("\n")).toContain(line);
  expect(text).toMatch(/^rowpost_build_info\{version="[^"]+",node="[^"]+"\} 1$/m);
  expect(text).not.toContain(`messages/${id}`);
});

test("only this machine reads them without a token, and not by way of a proxy or a page", async () => {
  const url = await served(consoleWith({}));
  const status = async (headers: Readonly<Record<string, string>>, at = url) =>
    (await fetch(`${at}/metrics`, { headers })).status;
  expect(await status({})).toBe(200);
  expect(await status({ "x-forwarded-for": "10.0.0.9" })).toBe(401);
  expect(await status({ "x-forwarded-for": "10.0.0.9", authorization: `Bearer ${scraper}` })).toBe(200);
  expect(await status({ authorization: "Bearer rp_wrong" })).toBe(401);
  expect(await status({}, await served(consoleWith({ publicUrl: "https://ops.test" })))).toBe(401);
  const rebound = await consoleWith({}).fetch(new Request("http://evil.test/metrics"));
  expect([rebound.status, rebound.headers.get("content-type")]).toEqual([401, "application/problem+json"]);
  expect((await fetch(`${url}/metrics`, { method: "POST" })).status).toBe(405);
  const guest = { authorize: () => null, access: undefined };
  expect(await status({}, await served(consoleWith(guest))), "its program says who asks").toBe(401);
  const boss = { authorize: () => ({ name: "boss", role: "reader" as const }), access: undefined };
  expect(await status({}, await served(consoleWith(boss)))).toBe(200);
});

test("a token of the role metrics opens nothing else", async () => {
  const made = consoleWith({});
  for (const path of ["/api/v1/meta", "/api/v1/s/main/messages", "/api/v1/s/main/overview"]) {
    const answer = await made.fetch(
      new Request(`http://x${path}`, { headers: { authorization: `Bearer ${scraper}` } }),
    );
    expect([path, answer.status]).toEqual([path, 403]);
  }
});

test("it is ready while it can read the table and the rest is well, and alive in any case", async () => {
  let isWell = true;
  const made = consoleWith({ isReady: () => isWell, basePath: "/ops" });
  const ask = async (path: string) => (await made.fetch(new Request(`http://x/ops${path}`))).status;
  expect([await ask("/readyz"), await ask("/livez")]).toEqual([200, 200]);
  isWell = false;
  expect([await ask("/readyz"), await ask("/livez")]).toEqual([503, 200]);
  await bench.sql("ALTER TABLE local_message RENAME TO gone");
  const blind = consoleWith({});
  const ready = await blind.fetch(new Request("http://x/readyz"));
  expect([ready.status, await ready.json()]).toEqual([503, { ready: false }]);
  const text = await (await fetch(`${await served(blind)}/metrics`)).text();
  expect(text).toContain('rowpost_table_readable{source="main"} 0');
  expect(text).toContain('rowpost_relays_alive{source="main"} NaN');
});
