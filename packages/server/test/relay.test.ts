/**
 * `rowpost relay` as a process: once, until a signal, two of them on one table, on a table of the
 * user's own.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "rowpost";
import { verifyWebhook } from "rowpost/http";
import { mysql } from "rowpost/mysql";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { insertMessages, rowpost, startRowpost, temporaryFile } from "./command.ts";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Keys of the messages that `--broker stdout:` printed. */
function keysIn(stdout: string): string[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { readonly key: string }).key);
}

/** Messages of a log in JSON. */
function logMessages(stderr: string): string[] {
  return stderr
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { readonly msg: string }).msg);
}

/** Lets a server listen on a free port until the test ends. */
async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

describe("on SQLite", () => {
  let place: Awaited<ReturnType<typeof temporaryFile>>;
  let database: Database;

  beforeEach(async () => {
    place = await temporaryFile();
    closers.push(() => place.remove());
    expect(await rowpost(["migrate", "--database", place.url])).toMatchObject({ code: 0 });
    database = sqlite({ file: place.file });
    closers.push(() => database.close());
  });

  test("--once sends what is due to standard output, and logs JSON to standard error", async () => {
    await insertMessages(database, { count: 40, topic: "orders", prefix: "a" });
    const { code, stdout, stderr } = await rowpost(["relay", "--database", place.url, "--broker", "stdout:", "--once"]);
    expect(code).toBe(0);
    expect(keysIn(stdout)).toHaveLength(40);
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({ key: "a-0", topic: "orders", attempt: 1 });
    expect(logMessages(stderr)).toEqual(["acquired shards", "nothing is due any more"]);
  });

  test("--once ends with 1 when its time is over and the broker was away", async () => {
    await insertMessages(database, { count: 1, topic: "orders", prefix: "a" });
    // Accepts the check, and never answers a message.
    const server = createServer((request, response) => {
      if (request.method === "HEAD") response.writeHead(204).end();
    });
    const port = await listen(server);
    const { code, stderr } = await rowpost([
      ...["relay", "--database", place.url, "--broker", `http://127.0.0.1:${port}/`, "--once", "--time-limit", "300ms"],
      ...["--publish-timeout", "2s", "--lease", "5s", "--drain-timeout", "500ms"],
    ]);
    expect(code).toBe(1);
    expect(logMessages(stderr).at(-1)).toBe("not everything that is due could be sent");
  });

  /** Answers each POST with 503 until it has refused so many. */
  async function busyConsumer(refusals: number): Promise<{ readonly port: number; readonly taken: () => number }> {
    let left = refusals;
    let taken = 0;
    const server = createServer((request, response) => {
      request.resume().on("end", () => {
        if (request.method === "HEAD") return void response.writeHead(204).end();
        left -= 1;
        if (left >= 0) return void response.writeHead(500).end("busy");
        taken += 1;
        response.writeHead(204).end();
      });
    });
    return { port: await listen(server), taken: () => taken };
  }

  test("--once that leaves messages for their next attempt says how many, and ends with 3", async () => {
    await insertMessages(database, { count: 5, topic: "orders", prefix: "a" });
    const { port } = await busyConsumer(1_000);
    const { code, stderr } = await rowpost([
      ...["relay", "--database", place.url, "--broker", `http://127.0.0.1:${port}/`, "--once"],
      ...["--backoff-base", "300d", "--backoff-max", "300d"],
    ]);
    expect(code).toBe(3);
    const last: unknown = JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({
      msg: "what was due was tried, and messages wait for their next attempt",
      level: "warn",
      complete: true,
      left: { due: 0, backoff: 5 },
    });
  });

  test("--once --until-empty waits for the next attempts, and ends with 0 when all are sent", async () => {
    await insertMessages(database, { count: 5, topic: "orders", prefix: "a" });
    const { port, taken } = await busyConsumer(7);
    const { code, stderr } = await rowpost([
      ...["relay", "--database", place.url, "--broker", `http://127.0.0.1:${port}/`, "--once", "--until-empty"],
      ...["--backoff-base", "100ms", "--backoff-max", "100ms"],
    ]);
    expect({ code, taken: taken(), last: logMessages(stderr).at(-1) }).toEqual({
      code: 0,
      taken: 5,
      last: "nothing is due any more",
    });
  });

  test("--once --until-empty ends with 3, and at once, when no attempt is due within its time", async () => {
    await insertMessages(database, { count: 2, topic: "orders", prefix: "a" });
    const { port } = await busyConsumer(1_000);
    const { code, stderr } = await rowpost([
      ...["relay", "--database", place.url, "--broker", `http://127.0.0.1:${port}/`, "--once", "--until-empty"],
      ...["--backoff-base", "300d", "--backoff-max", "300d", "--time-limit", "1h"],
    ]);
    expect({ code, last: logMessages(stderr).at(-1) }).toEqual({
      code: 3,
      last: "what was due was tried, and messages wait for their next attempt",
    });
  });

  test("--http serves metrics and health, ready also while the broker is away; closed at the stop", async () => {
    await insertMessages(database, { count: 3, topic: "orders", prefix: "a" });
    const relay = startRowpost([
      ...["relay", "--database", place.url, "--broker", "http://127.0.0.1:9/", "--http", "127.0.0.1:0"],
    ]);
    closers.push(() => relay.child.kill("SIGKILL"));
    await relay.printed("the broker cannot be reached");
    const [, address] = /"address":"([^"]+)"/.exec(relay.stderr()) ?? [];
    const get = async (path: string): Promise<[number, string]> => {
      const response = await fetch(`http://${address}${path}`);
      return [response.status, await response.text()];
    };
    const [code, metrics] = await get("/metrics");
    expect(code).toBe(200);
    expect(metrics).toContain('rowpost_broker_away{broker="http"} 1');
    expect(metrics).toMatch(/^rowpost_build_info\{version="[^"]+",node="[^"]+"\} 1$/m);
    expect(await get("/livez")).toEqual([200, "ok\n"]);
    const [ready, body] = await get("/readyz");
    expect([ready, JSON.parse(body)]).toMatchObject([200, { ready: true, brokersAway: 1 }]);
    expect((await get("/other"))[0]).toBe(404);
    expect((await fetch(`http://${address}/metrics`, { method: "POST" })).status).toBe(405);

    const second = await rowpost([
      ...["relay", "--database", place.url, "--broker", "http://127.0.0.1:9/", "--http", String(address)],
    ]);
    expect(second.code).toBe(1);
    expect(second.stderr.trimEnd().split("\n").at(-1)).toMatch(/^rowpost: --http .*another process has this port/);
    relay.child.kill("SIGTERM");
    expect((await relay.finished).code).toBe(0);
    await expect(get("/livez")).rejects.toThrow();
  });

  test("--http with an address that is none: one line, exit code 2", async () => {
    for (const address of ["here", "70000", "host:port", ""]) {
      const { code, stderr } = await rowpost([
        "relay",
        "--database",
        place.url,
        "--broker",
        "memory:",
        "--http",
        address,
      ]);
      expect([code, stderr.trimEnd().split("\n")]).toEqual([2, [expect.stringContaining("HOST:PORT")]]);
    }
  });

  /** An HTTP consumer that takes only what is signed with its own secret. */
  async function signedConsumer(secret: string) {
    const keys: string[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks);
        if (request.method === "HEAD") return void response.writeHead(204).end();
        if (!verifyWebhook({ secret, body, headers: request.headers })) return void response.writeHead(401).end();
        keys.push(String(request.headers["rowpost-key"]));
        response.writeHead(204).end();
      });
    });
    return { keys, port: await listen(server) };
  }

  test("routes send each topic to its broker, with the secret of its own URL", async () => {
    const [shop, partner] = ["whsec_c2hvcC1zaG9wLXNob3Atc2hvcA==", "whsec_cGFydG5lci1wYXJ0bmVyLXBhcg=="];
    const consumers = { shop: await signedConsumer(shop), partner: await signedConsumer(partner) };
    await insertMessages(database, { count: 3, topic: "orders.eu", prefix: "o" });
    await insertMessages(database, { count: 3, topic: "billing", prefix: "b" });
    await insertMessages(database, { count: 3, topic: "stock", prefix: "s" });
    const { code, stdout, stderr } = await rowpost(
      ["relay", "--database", place.url, "--broker", "stdout:", "--once", "--max-attempts", "1"],
      {
        ROWPOST_ROUTES: `orders.*=http://127.0.0.1:${consumers.shop.port}/hook\n billing=http://127.0.0.1:${consumers.partner.port}/#partner`,
        ROWPOST_HTTP_SECRET: shop,
        ROWPOST_HTTP_SECRET_PARTNER: partner,
      },
    );
    expect({ code, stdoutKeys: keysIn(stdout) }).toEqual({ code: 0, stdoutKeys: ["s-0", "s-1", "s-2"] });
    expect(consumers.shop.keys.sort()).toEqual(["o-0", "o-1", "o-2"]);
    expect(consumers.partner.keys.sort()).toEqual(["b-0", "b-1", "b-2"]);
    expect(stderr).toContain(
      `orders.*=http://127.0.0.1:${consumers.shop.port}/hook, billing=http://127.0.0.1:${consumers.partner.port}/, otherwise stdout:`,
    );
  });

  test("--once with one of two brokers away sends the other's messages, says which is away, and ends with 1", async () => {
    await insertMessages(database, { count: 3, topic: "away", prefix: "a" });
    await insertMessages(database, { count: 3, topic: "here", prefix: "h" });
    const { code, stdout, stderr } = await rowpost([
      ...["relay", "--database", place.url, "--route", "away=http://u:hunter2@127.0.0.1:9/", "--route", "here=stdout:"],
      ...["--once", "--time-limit", "2s"],
    ]);
    expect({ code, keys: keysIn(stdout) }).toEqual({ code: 1, keys: ["h-0", "h-1", "h-2"] });
    expect(stderr).toContain("1 of 2 brokers cannot be used: http for away");
    expect(stderr).not.toContain("hunter2");
    expect(logMessages(stderr).at(-1)).toBe("not everything that is due could be sent");
  });

  test("a signal stops it cleanly: leases are given back, exit code 0", async () => {
    const relay = startRowpost(["relay", "--database", place.url, "--broker", "stdout:", "--label", "the-one"]);
    await relay.printed("acquired shards");
    await insertMessages(database, { count: 5, topic: "orders", prefix: "a" });
    await relay.printed('"key":"a-4"');
    const running = await rowpost(["status", "--database", place.url]);
    expect(running.stdout).toMatch(/^the-one +1 of 1 /m);
    relay.child.kill("SIGTERM");
    const { code, stderr } = await relay.finished;
    expect(code).toBe(0);
    expect(logMessages(stderr).slice(-2)).toEqual(["relay stops", "relay stopped"]);
    expect(JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({ drained: true, sent: 5 });
    const status = JSON.parse((await rowpost(["status", "--json", "--database", place.url])).stdout) as {
      readonly leases: readonly { readonly owner?: string }[];
    };
    expect(status.leases.map(({ owner }) => owner)).toEqual([undefined]);
  });

  test("a second signal ends it at once, with 1", async () => {
    await insertMessages(database, { count: 1, topic: "orders", prefix: "a" });
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.push(
      () => server.close(),
      () => server.closeAllConnections(),
    );
    const posted = new Promise<void>((resolve) => {
      server.on("request", (request, response) => {
        if (request.method === "HEAD") response.writeHead(204).end();
        else resolve();
      });
    });
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const relay = startRowpost(["relay", "--database", place.url, "--broker", `http://127.0.0.1:${port}/`]);
    await posted;
    relay.child.kill("SIGINT");
    await relay.printed("relay stops");
    relay.child.kill("SIGINT");
    const { code, stderr } = await relay.finished;
    expect(code).toBe(1);
    expect(logMessages(stderr).at(-1)).toContain("second signal");
  });

  test("stops when nobody reads its standard output any more", async () => {
    await insertMessages(database, { count: 400, topic: "orders", prefix: "a" });
    const relay = startRowpost(["relay", "--database", place.url, "--broker", "stdout:", "--batch-size", "20"]);
    await relay.printed('"key":"a-0"');
    relay.child.stdout?.destroy();
    await insertMessages(database, { count: 400, topic: "orders", prefix: "b" });
    const { code, stderr } = await relay.finished;
    expect(code).toBe(1);
    expect(stderr).toContain("standard output was closed");
    expect(logMessages(stderr).at(-1)).toBe("relay stopped");
  });

  test("a signal ends it although nobody reads its standard output", async () => {
    // More than the pipe and the buffers on both of its sides take.
    await insertMessages(database, { count: 8_000, topic: "orders", prefix: "a" });
    const relay = startRowpost([
      ...["relay", "--database", place.url, "--broker", "stdout:"],
      ...["--publish-timeout", "300ms", "--lease", "5s", "--drain-timeout", "500ms"],
    ]);
    closers.push(() => relay.child.kill("SIGKILL"));
    relay.child.stdout?.pause();
    await relay.printed("a topic rests");
    const exited = once(relay.child, "exit");
    relay.child.kill("SIGTERM");
    await relay.printed("relay stopped");
    const drained = /"drained":true/.test(relay.stderr());
    expect(await exited).toEqual([drained ? 0 : 1, null]);
  });

  test("what other commands print waits for its reader, however long that takes", async () => {
    await insertMessages(database, { count: 4_000, topic: "orders", prefix: "a" });
    const list = startRowpost(["list", "--json", "--limit", "4000", "--database", place.url]);
    closers.push(() => list.child.kill("SIGKILL"));
    list.child.stdout?.pause();
    // Longer than a relay that must end would wait.
    const ended = await Promise.race([once(list.child, "exit"), sleep(2_500)]);
    expect(ended).toBeUndefined();
    list.child.stdout?.resume();
    const { code, stdout } = await list.finished;
    expect(code).toBe(0);
    expect(stdout).toContain('"a-3999"');
  });

  test("waits for a broker that is away, and says so", async () => {
    const relay = startRowpost(["relay", "--database", place.url, "--broker", "http://127.0.0.1:9/"]);
    await relay.printed("the broker cannot be used yet; messages wait until it can");
    await relay.printed("relay runs");
    relay.child.kill("SIGTERM");
    expect(await relay.finished).toMatchObject({ code: 0 });
  });

  test("a table that was never made: one line, exit code 1", async () => {
    const { code, stderr } = await rowpost([
      "relay",
      "--database",
      place.url,
      "--broker",
      "memory:",
      "--table",
      "other",
    ]);
    expect(code).toBe(1);
    expect(stderr.trimEnd().split("\n").at(-1)).toMatch(/^rowpost: .*rowpost migrate/);
  });
});

describeWithService("mariadb", "relays", (service) => {
  async function prepare(): Promise<{ readonly url: string; readonly database: Database }> {
    const made = await createTestDatabase(service.name);
    closers.push(() => made.drop());
    const url = made.url.replace(/^mariadb:/, "mysql:");
    const database = mysql({ url });
    closers.push(() => database.close());
    return { url, database };
  }

  test("two on one table share the shards and send nothing twice", async () => {
    const { url, database } = await prepare();
    expect(await rowpost(["migrate", "--database", url])).toMatchObject({ code: 0 });
    const start = (scheme: string): ReturnType<typeof startRowpost> =>
      startRowpost([
        "relay",
        "--database",
        url.replace(/^mysql:/, scheme),
        "--broker",
        "stdout:",
        // The first to start is running when the second one looks.
        "--force",
        "--heartbeat",
        "200ms",
      ]);
    const relays = [start("mysql:"), start("mariadb:")];
    for (const relay of relays) closers.push(() => relay.child.kill("SIGKILL"));
    await Promise.all(relays.map((relay) => relay.printed("acquired shards")));
    const admin = database.messageAdmin({ layout: database.defaultLayout });
    closers.push(() => admin.close());
    await expect
      .poll(async () => heldShards((await admin.status()).leases), { timeout: 30_000, interval: 100 })
      .toEqual([8, 8]);

    await insertMessages(database, { count: 600, topic: "orders", prefix: "a" });
    await expect
      .poll(() => relays.flatMap((relay) => keysIn(wholeLines(relay.stdout()))).length, {
        timeout: 30_000,
        interval: 100,
      })
      .toBe(600);
    for (const relay of relays) relay.child.kill("SIGTERM");
    const ended = await Promise.all(relays.map((relay) => relay.finished));
    expect(ended.map(({ code }) => code)).toEqual([0, 0]);
    const keys = ended.flatMap(({ stdout }) => keysIn(stdout));
    expect(keys).toHaveLength(600);
    expect(new Set(keys).size).toBe(600);
    expect(Math.min(...ended.map(({ stdout }) => keysIn(stdout).length))).toBeGreaterThan(0);
  });

  test("words in the state column of a table of the user's own", async () => {
    const { url, database } = await prepare();
    const words = "pending=待发送,sending=发送中,sent=已发送,failed=发送失败,consumed=已消费,suspended=已挂起";
    const session = await database.connect({ purpose: "tool" });
    closers.push(() => session.close());
    const run = (text: string): Promise<unknown> => session.run({ name: "test", text, params: [] });
    await run(`CREATE TABLE message_table (
  id BIGINT AUTO_INCREMENT PRIMARY KEY, message_key VARCHAR(128) NOT NULL, message_id VARCHAR(128), message_type VARCHAR(64) NOT NULL,
  topic VARCHAR(64) NOT NULL, message_body TEXT NOT NULL, state VARCHAR(16) NOT NULL, retry_count INT DEFAULT 0,
  next_retry_at DATETIME, last_retry_time DATETIME, fail_reason TEXT, lock_version INT DEFAULT 0,
  gmt_create DATETIME NOT NULL, gmt_modified DATETIME NOT NULL, UNIQUE KEY (message_type, message_key), KEY (state, next_retry_at)
) DEFAULT CHARSET = utf8mb4`);
    await run(`INSERT INTO message_table (message_key, message_type, topic, message_body, state, gmt_create, gmt_modified)
VALUES ('k1', 'order.created', 'orders', '{}', '待发送', NOW(), NOW())`);
    const options = ["--database", url, "--layout", "message_table", "--states", words];
    expect(await rowpost(["migrate", ...options])).toMatchObject({ code: 0 });
    const { code, stdout } = await rowpost(["relay", ...options, "--broker", "stdout:", "--once"]);
    expect({ code, keys: keysIn(stdout) }).toEqual({ code: 0, keys: ["k1"] });
    expect(
      (await session.run({ name: "test", text: "SELECT state AS state FROM message_table", params: [] })).rows,
    ).toEqual([{ state: "已发送" }]);
    expect((await rowpost(["list", ...options])).stdout).toMatch(/k1 +orders +sent/);
  });
});

/** Shards of each owner. */
function heldShards(leases: readonly { readonly owner: string | undefined }[]): number[] {
  const held = new Map<string, number>();
  for (const { owner } of leases) if (owner !== undefined) held.set(owner, (held.get(owner) ?? 0) + 1);
  return [...held.values()];
}

/** Without the line that is still being printed. */
function wholeLines(text: string): string {
  return text.slice(0, text.lastIndexOf("\n") + 1);
}
