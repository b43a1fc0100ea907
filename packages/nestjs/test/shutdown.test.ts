/**
 * A real application under load gets SIGTERM: what it committed is published, by itself or by the
 * next instance, once; nothing that it did not commit is; and it leaves neither leases nor messages
 * on their way behind.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { createRelayDatabase } from "../../rowpost/test/relay/bench-database.ts";
import { describeWithService, type TestService } from "../../rowpost/test/services.ts";

const PROGRAM = fileURLToPath(new URL("./shop.process.mjs", import.meta.url));
const CLIENTS = 16;
const [PENDING, SENDING] = [0, 1];

const sorted = (ids: Iterable<string>): string[] => [...ids].sort((left, right) => left.localeCompare(right));

/** Tables, a ledger, and processes; all gone when the test is over. */
async function createShops(service: TestService<"mariadb" | "postgres">) {
  const database = await createRelayDatabase(service.name);
  onTestFinished(() => database.drop());
  await database.sql("CREATE TABLE orders (id VARCHAR(64) PRIMARY KEY)");
  const folder = await mkdtemp(join(tmpdir(), "rowpost_nest_"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const ledger = join(folder, "ledger");
  const task = JSON.stringify({ service: service.name, url: database.url, ledger });

  async function start() {
    const process = fork(PROGRAM, [task], { execArgv: [] });
    onTestFinished(() => void process.kill("SIGKILL"));
    const [{ port }] = (await once(process, "message")) as [{ readonly port: number }];
    return { process, url: `http://127.0.0.1:${port}/orders` };
  }

  return {
    start,
    published: (): string[] => (existsSync(ledger) ? readFileSync(ledger, "utf8").split("\n").slice(0, -1) : []),
    orders: async () => sorted((await database.sql("SELECT id FROM orders")).map((row) => String(row["id"]))),
    count: async (what: string) => Number((await database.sql(`SELECT COUNT(*) AS n FROM ${what}`))[0]?.["n"]),
  };
}

/** Clients that order one after another until the shop answers no more. */
function order(url: string): { readonly confirmed: Set<string>; readonly done: Promise<unknown> } {
  const confirmed = new Set<string>();
  const headers = { "content-type": "application/json" };
  async function client(name: number): Promise<void> {
    for (let turn = 0; ; turn += 1) {
      const id = `${name}-${turn}`;
      const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify({ id }) }).catch(() => undefined);
      if (answer === undefined) return;
      if (answer.status === 201) confirmed.add(id);
    }
  }
  return { confirmed, done: Promise.all(Array.from({ length: CLIENTS }, (_, name) => client(name))) };
}

/** SIGTERM. Resolves with how the process ended. */
async function terminate(process: ChildProcess): Promise<unknown[]> {
  const exited = once(process, "exit");
  process.kill("SIGTERM");
  return await exited;
}

describeWithService(["mariadb", "postgres"], "a shop under load", (service) => {
  test("loses nothing and invents nothing", async () => {
    const { start, published, orders, count } = await createShops(service);
    const first = await start();
    const { confirmed, done } = order(first.url);
    await vi.waitUntil(() => confirmed.size >= 300 && published().length >= 100, { timeout: 40_000, interval: 5 });

    // Nest ends itself with the signal that it got, once every hook has run.
    expect(await terminate(first.process)).toEqual([null, "SIGTERM"]);
    await done;
    const placed = await orders();
    expect([...confirmed].filter((id) => !placed.includes(id))).toEqual([]);
    expect(await count("local_message_shard WHERE owner IS NOT NULL")).toBe(0);
    expect(await count(`local_message WHERE state = ${SENDING}`)).toBe(0);
    expect(published().length + (await count(`local_message WHERE state = ${PENDING}`))).toBe(placed.length);

    const second = await start();
    await vi.waitUntil(() => published().length >= placed.length, { timeout: 40_000, interval: 20 });
    expect(await terminate(second.process)).toEqual([null, "SIGTERM"]);
    expect(sorted(published())).toEqual(placed);
  }, 120_000);
});
