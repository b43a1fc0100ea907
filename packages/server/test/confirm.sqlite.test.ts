/** Confirmations by hand and over HTTP, on a SQLite file. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import type { Database } from "rowpost";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { insertMessages, type Running, rowpost, rowpostHere, startRowpost, temporaryFile } from "./command.ts";

const TOKEN = randomBytes(16).toString("hex");
let place: Awaited<ReturnType<typeof temporaryFile>>;
let database: Database;
let type: string;

beforeEach(async () => {
  place = await temporaryFile();
  database = sqlite({ file: place.file });
  expect(await on("migrate")).toMatchObject({ code: 0 });
  await insertMessages(database, { count: 4, topic: "orders", prefix: "a" });
  type = String((await rows("SELECT DISTINCT message_type AS type FROM local_message"))[0]?.["type"]);
  await rows("UPDATE local_message SET state = 2");
});
afterEach(async () => {
  await database.close();
  await place.remove();
});

function on(...[name = "", ...args]: string[]): ReturnType<typeof rowpostHere> {
  return rowpostHere([name, "--database", place.url, ...args]);
}

async function rows(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const session = await database.connect({ purpose: "tool" });
  const result = await session.run({ name: "test", text, params: [] });
  await session.close();
  return result.rows;
}

async function states(): Promise<string> {
  return (await rows("SELECT state AS state FROM local_message ORDER BY message_key"))
    .map(({ state }) => String(state))
    .join("");
}

describe("rowpost confirm", () => {
  test("one message, twice, and one that is not there", async () => {
    const one = ["confirm", "--type", type, "--key", "a-1"];
    expect(await on(...one)).toMatchObject({ code: 0, stdout: "consumed\n" });
    expect(await on(...one)).toMatchObject({ code: 0, stdout: "consumed\n" });
    expect(await states()).toBe("2422");
    expect(await on("confirm", "--type", type, "--key", "b-1")).toMatchObject({
      code: 1,
      stdout: `unknown\nneither in the table nor in its archive: ${type}:b-1\n`,
    });
  });

  test("a type with named consumers, and a failure", async () => {
    const named = ["confirm", "--type", type, "--consumers", `${type}=billing,stock`];
    expect(await on(...named, "--key", "a-0", "--consumer", "stock")).toMatchObject({
      stdout: "waiting for billing\n",
    });
    expect(await on(...named, "--key", "a-0", "--consumer", "billing")).toMatchObject({ stdout: "consumed\n" });
    expect(await on(...named, "--key", "a-0")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("billing, stock"),
    });
    expect(await on("confirm", "--type", type, "--key", "a-1", "--error", "no such customer")).toMatchObject({
      stdout: "reported\n",
    });
    expect(await rows("SELECT fail_reason AS reason FROM local_message WHERE message_key = 'a-1'")).toEqual([
      { reason: "NOT_CONSUMED: no such customer" },
    ]);
  });

  test("--unknown lists what was said of messages that were not there, and which are there now", async () => {
    expect(await on("confirm", "--unknown")).toMatchObject({ stdout: "no confirmations of unknown messages\n" });
    await on("confirm", "--type", type, "--key", "z-0", "--consumer", "billing", "--error", "no such customer");
    await on("confirm", "--type", type, "--key", "z-9");
    await on("confirm", "--type", type, "--key", "z-9");
    await insertMessages(database, { count: 1, topic: "orders", prefix: "z" });
    const { code, stdout } = await on("confirm", "--unknown", "--type", type);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^LAST +TIMES +TYPE +KEY +CONSUMER +SAID +MESSAGE$/m);
    expect(stdout).toMatch(/Z +2 +\S+ +z-9 +consumed +not there$/m);
    expect(stdout).toMatch(/Z +1 +\S+ +z-0 +billing +no such customer +there now$/m);
    expect(await states()).toBe("22220");
    const billing = await on("confirm", "--unknown", "--consumer", "billing", "--json");
    expect(JSON.parse(billing.stdout)).toMatchObject([{ key: "z-0", times: 1, isThere: true }]);
    expect(await on("confirm", "--unknown", "--file", "x")).toMatchObject({ code: 2 });
  });

  test("a file of them; a line that is none is named, and nothing is confirmed", async () => {
    const file = `${place.file}.ndjson`;
    const lines = ["a-0", "a-2", "gone"].map((key) => JSON.stringify({ type, key }));
    await writeFile(file, `${lines.join("\n")}\n{"type":1\n`);
    expect(await on("confirm", "--file", file)).toMatchObject({ code: 2, stderr: expect.stringContaining("line 4") });
    expect(await states()).toBe("2222");
    await writeFile(file, `${lines.join("\n")}\n`);
    expect(await on("confirm", "--file", file)).toMatchObject({
      code: 1,
      stdout: `2 consumed, 1 unknown\nneither in the table nor in its archive: ${type}:gone\n`,
    });
    expect(await states()).toBe("4242");
    const { stdout } = await on("confirm", "--file", file, "--json");
    expect((JSON.parse(stdout) as { status: string }[]).map(({ status }) => status)).toEqual([
      "consumed",
      "consumed",
      "unknown",
    ]);
  });

  test("no message at all is wrong input", async () => {
    expect(await on("confirm")).toMatchObject({ code: 2, stderr: expect.stringContaining("--type and --key") });
    expect(await on("confirm", "--consumers", "x", "--type", type, "--key", "a-1")).toMatchObject({ code: 2 });
  });
});

describe("relay --http with a token", () => {
  let relay: Running | undefined;
  afterEach(async () => {
    relay?.child.kill("SIGTERM");
    await relay?.finished;
    relay = undefined;
  });

  async function start(...args: string[]): Promise<(body: unknown, init?: RequestInit) => Promise<Response>> {
    const common = ["relay", "--database", place.url, "--broker", "memory:", "--http", "127.0.0.1:0"];
    relay = startRowpost([...common, ...args], { ROWPOST_CONFIRM_TOKEN: TOKEN });
    await relay.printed("relay runs");
    const [, address] = /"address":"([^"]+)"/.exec(relay.stderr()) ?? [];
    return (body, init = {}) =>
      fetch(`http://${address}/confirmations`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}` },
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...init,
      });
  }

  test("takes one report and a list, and answers as outbox.confirm does", async () => {
    const post = await start("--consumers", `${type}=billing,stock`);
    const stock = await post({ type, key: "a-0", consumer: "stock" });
    expect({ status: stock.status, body: await stock.json() }).toEqual({
      status: 200,
      body: { status: "waiting", waitingFor: ["billing"] },
    });
    const list = await post([
      { type, key: "a-0", consumer: "billing" },
      { type: "other", key: "gone" },
    ]);
    expect(await list.json()).toEqual([{ status: "consumed" }, { status: "unknown", kept: true }]);
    expect(await states()).toBe("4222");
    expect(relay?.stderr()).toContain("confirmed messages are neither in the table nor in its archive");
    const metrics = await (await fetch(list.url.replace("/confirmations", "/metrics"))).text();
    expect(metrics).toContain('rowpost_confirmations_total{status="consumed"} 1');
    expect(metrics).toContain('rowpost_confirmations_total{status="unknown"} 1');
  });

  test("refuses whoever has no token, and what is no report; nothing changes", async () => {
    const post = await start();
    const report = { type, key: "a-0" };
    for (const authorization of ["", "Bearer", `Bearer ${TOKEN}x`, `Basic ${TOKEN}`]) {
      const { status, headers } = await post(report, { headers: { authorization } });
      expect({ authorization, status, challenge: headers.get("www-authenticate") }).toEqual({
        authorization,
        status: 401,
        challenge: "Bearer",
      });
    }
    const expected: [unknown, number, RegExp][] = [
      ["{", 400, /must be JSON/],
      ["null", 400, /is \{ type, key/],
      [[], 200, /^\[\]\n$/],
      [{ type, key: "" }, 400, /key/],
      [{ type, key: "a-0", kind: 1 }, 400, /kind/],
      [[report, { type }], 400, /key/],
      [Array.from({ length: 1_001 }, () => report), 413, /several requests/],
      ["x".repeat(1_048_577), 413, /several requests/],
    ];
    for (const [body, status, words] of expected) {
      const response = await post(body);
      expect([response.status, await response.text()]).toEqual([status, expect.stringMatching(words)]);
    }
    const get = await post(undefined, { method: "GET", body: null });
    expect({ status: get.status, allow: get.headers.get("allow") }).toEqual({ status: 405, allow: "POST" });
    expect(await states()).toBe("2222");
    expect(relay?.stderr()).not.toContain(TOKEN);
  });

  test("a table that cannot be written: 500 without its name, and the log says why", async () => {
    const post = await start();
    await rows("ALTER TABLE local_message RENAME TO elsewhere");
    const response = await post({ type, key: "a-0" });
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 500,
      body: { status: 500, detail: expect.not.stringContaining("local_message") },
    });
    expect(relay?.stderr()).toContain("confirmations could not be written");
    await rows("ALTER TABLE elsewhere RENAME TO local_message");
    expect((await post({ type, key: "a-0" })).status).toBe(200);
  });

  test("a token that can be guessed is refused; without one nothing is taken", async () => {
    const common = ["relay", "--database", place.url, "--broker", "memory:", "--http", "127.0.0.1:0"];
    const short = await rowpost(common, { ROWPOST_CONFIRM_TOKEN: "secret" });
    expect(short).toMatchObject({ code: 2, stderr: expect.stringContaining("at least 16 characters") });
    expect(await rowpost([...common, "--consumers", "a=b"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("ROWPOST_CONFIRM_TOKEN"),
    });
    relay = startRowpost(common);
    await relay.printed(/"address":"[^"]+"/);
    const [, address] = /"address":"([^"]+)"/.exec(relay.stderr()) ?? [];
    const response = await fetch(`http://${address}/confirmations`, { method: "POST", body: "{}" });
    expect([response.status, await response.text()]).toEqual([
      404,
      expect.stringContaining("ROWPOST_CONFIRM_TOKEN is not set"),
    ]);
  });
});
