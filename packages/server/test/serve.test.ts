/** `rowpost serve`: both halves work, stop together without losing anything, and end together. */
import { createServer } from "node:http";
import { type Database, type Logger, memory, silentLogger } from "rowpost";
import { mysql } from "rowpost/mysql";
import { sqlite } from "rowpost/sqlite";
import { afterEach, expect, test } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { serveConsole } from "../src/cli/console-options.ts";
import { type DaemonOptions, runRelay } from "../src/daemon.ts";
import { parseDatabaseUrl } from "../src/database-url.ts";
import { listen } from "../src/http-listen.ts";
import { insertMessages, type Running, rowpost, rowpostHere, startRowpost, temporaryFile } from "./command.ts";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function sqliteFile(): Promise<{ readonly url: string; readonly database: Database }> {
  const place = await temporaryFile();
  closers.push(() => place.remove());
  expect(await rowpostHere(["migrate", "--database", place.url])).toMatchObject({ code: 0 });
  const database = sqlite({ file: place.file });
  closers.push(() => database.close());
  return { url: place.url, database };
}

/** A consumer over HTTP that counts what it takes. */
async function startConsumer(): Promise<{
  readonly url: string;
  readonly keys: string[];
  seen(count: number): Promise<void>;
}> {
  const keys: string[] = [];
  let look = (): void => undefined;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      if (request.method !== "HEAD") keys.push(String(request.headers["rowpost-key"]));
      response.writeHead(204).end();
      look();
    });
  });
  const listening = await listen(server, { host: "127.0.0.1", port: 0 }, "--listen");
  closers.push(() => listening.close());
  return {
    url: `http://${listening.address}/`,
    keys,
    seen: (count) =>
      new Promise((resolve) => {
        look = () => (keys.length >= count ? resolve() : undefined);
        look();
      }),
  };
}

/** Starts it on a free port, and waits until both halves run. */
async function serve(
  url: string,
  ...args: readonly string[]
): Promise<{ readonly running: Running; readonly at: string }> {
  const running = startRowpost(["serve", "--database", url, "--listen", "0", ...args]);
  closers.push(() => {
    running.child.kill("SIGKILL");
    return running.finished;
  });
  await running.printed(/console at \S+/);
  await running.printed("relay runs");
  return { running, at: /console at (http:[^;#\s]+)/.exec(running.stdout())?.[1] ?? "" };
}

/** Stopped by SIGTERM in the midst of writers and viewers; another relay finishes what is left. */
async function stopUnderLoad({ url, database }: { readonly url: string; readonly database: Database }): Promise<void> {
  const consumer = await startConsumer();
  const { running, at } = await serve(url, "--broker", consumer.url);
  let isOver = false;
  closers.push(() => {
    isOver = true;
  });
  let batches = 0;
  const writing = (async () => {
    for (; !isOver; batches += 1) {
      await insertMessages(database, { count: 20, topic: "orders", prefix: `b${batches}` });
      // SQLite works in this process, without a pause: the consumer has to get its turn.
      await new Promise(setImmediate);
    }
  })();
  let looks = 0;
  const viewing = (async () => {
    while (!isOver) {
      const answer = await fetch(`${at}metrics`).catch(() => undefined);
      if (answer?.status === 200) looks += 1;
      await answer?.text().catch(() => "");
    }
  })();
  await consumer.seen(200);
  await expect.poll(() => looks).toBeGreaterThan(0);
  running.child.kill("SIGTERM");
  const { code, stderr } = await running.finished;
  isOver = true;
  await Promise.all([writing, viewing]);
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({ msg: "relay stopped", drained: true });
  await expect(fetch(at)).rejects.toThrow();

  expect(await rowpost(["relay", "--database", url, "--broker", consumer.url, "--once"])).toMatchObject({ code: 0 });
  const written = Array.from({ length: batches }, (_, batch) =>
    Array.from({ length: 20 }, (_, index) => `b${batch}-${index}`),
  ).flat();
  expect(new Set(consumer.keys)).toEqual(new Set(written));
}

test("SIGTERM under load loses nothing, on SQLite", async () => {
  await stopUnderLoad(await sqliteFile());
});

describeWithService("mariadb", "rowpost serve", (service) => {
  test("SIGTERM under load loses nothing, on MariaDB", async () => {
    const made = await createTestDatabase(service.name);
    closers.push(() => made.drop());
    expect(await rowpostHere(["migrate", "--database", made.url])).toMatchObject({ code: 0 });
    const database = mysql({ url: made.url.replace(/^mariadb:/, "mysql:") });
    closers.push(() => database.close());
    await stopUnderLoad({ url: made.url, database });
  });
});

test("one address tells of both halves, and the console shows what the relay does", async () => {
  const { url, database } = await sqliteFile();
  const consumer = await startConsumer();
  const { running, at } = await serve(url, "--broker", consumer.url);
  await insertMessages(database, { count: 5, topic: "orders", prefix: "a" });
  await consumer.seen(5);
  await expect
    .poll(async () => await (await fetch(`${at}metrics`)).text(), { timeout: 30_000 })
    .toMatch(/rowpost_published_total\{topic="orders"\} 5[\s\S]*rowpost_relays_alive\{source="main"\} 1/);
  const ready = await fetch(`${at}readyz`);
  expect([ready.status, await ready.json()]).toEqual([200, { ready: true }]);
  running.child.kill("SIGTERM");
  expect(await running.finished).toMatchObject({ code: 0 });
});

test("what the broker stdout: prints has no other line in it", async () => {
  const { url, database } = await sqliteFile();
  await insertMessages(database, { count: 3, topic: "orders", prefix: "a" });
  const running = startRowpost(["serve", "--database", url, "--listen", "0", "--broker", "stdout:"]);
  closers.push(() => running.child.kill("SIGKILL"));
  await running.printed('"key":"a-2"');
  await running.printed(/console at \S+/);
  running.child.kill("SIGTERM");
  const { code, stderr, stdout } = await running.finished;
  const keys = stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly key: string }).key);
  expect({ code, keys }).toEqual({ code: 0, keys: ["a-0", "a-1", "a-2"] });
  expect(stderr).toContain("console at ");
});

test("a port that is taken keeps the relay from starting", async () => {
  const { url, database } = await sqliteFile();
  const taken = createServer();
  const listening = await listen(taken, { host: "127.0.0.1", port: 0 }, "--listen");
  closers.push(() => listening.close());
  const without = await rowpost(["serve", "--database", url, "--broker", "memory:", "--listen", listening.address]);
  expect(without).toMatchObject({ code: 1, stdout: "" });
  expect(without.stderr).toMatch(/^rowpost: --listen .*another process has this port; choose another one\n$/);

  const session = await database.connect({ purpose: "tool" });
  closers.push(() => session.close());
  const run = async (text: string) => (await session.run({ name: "test", text, params: [] })).rows;
  expect(await run("SELECT owner FROM local_message_relay")).toEqual([]);
});

/** A relay in this process, with something beside it. */
async function runBeside(database: Database, logger: Logger, beside: DaemonOptions["beside"]): Promise<unknown> {
  return await runRelay({
    relay: { database, broker: memory(), layout: database.defaultLayout, logger },
    databaseLabel: "",
    brokerLabel: "",
    once: undefined,
    http: undefined,
    beside,
    confirm: { types: [], token: undefined, source: undefined },
  });
}

test("a relay that cannot start ends the console too", async () => {
  const { database, url } = await sqliteFile();
  let at = "";
  const running = runBeside(database, silentLogger, async () => {
    const served = await serveConsole(
      { listen: { host: "127.0.0.1", port: 0 } },
      { database, layout: database.defaultLayout, address: parseDatabaseUrl(url, {}) },
      {
        logger: silentLogger,
        say: (line) => {
          at = /console at (http:[^#]+)/.exec(line)?.[1] ?? "";
        },
      },
    );
    expect((await fetch(`${at}livez`)).status).toBe(200);
    const session = await database.connect({ purpose: "tool" });
    await session.run({ name: "test", text: "DROP TABLE local_message_shard", params: [] });
    await session.close();
    return served;
  });
  await expect(running).rejects.toThrow("local_message_shard");
  expect(at).not.toBe("");
  await expect(fetch(`${at}livez`)).rejects.toThrow();
});

test("wrong options are told before anything is opened", async () => {
  const { url } = await sqliteFile();
  for (const [args, words] of [
    [["--listen", "0"], "--broker is missing"],
    [["--broker", "memory:", "--listen", "0.0.0.0:0"], "--access FILE"],
    [["--broker", "memory:", "--keep", "1d"], "--on-sent"],
    [["--broker", "memory:", "--once"], "--once"],
  ] as const) {
    const { code, stderr, stdout } = await rowpostHere(["serve", "--database", url, ...args]);
    expect({ code, stdout, told: stderr.includes(words), lines: stderr.split("\n").length }, stderr).toEqual({
      code: 2,
      stdout: "",
      told: true,
      lines: 2,
    });
  }
});

test("a console that fails while it is served stops the relay, which gives its shards back", async () => {
  const { database } = await sqliteFile();
  const failure = new AbortController();
  const reason = new Error("the console is served no more");
  let closes = 0;
  const logger: Logger = {
    ...silentLogger,
    info: (message) => void (message === "relay runs" && failure.abort(reason)),
  };
  const running = runBeside(database, logger, async () => ({
    failed: failure.signal,
    close: async () => {
      closes += 1;
    },
  }));
  await expect(running).rejects.toBe(reason);
  expect(closes).toBe(1);
  const admin = database.messageAdmin({ layout: database.defaultLayout });
  closers.push(() => admin.close());
  expect((await admin.status()).leases.map(({ owner }) => owner)).toEqual([undefined]);
});
