/**
 * Two relay processes on one table share the work, and one that is told to stop hands its part
 * over: nothing twice, nothing lost, no key out of order.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";
import { describeWithService } from "../services.ts";

const PROGRAM = fileURLToPath(new URL("./relay.process.mjs", import.meta.url));
const MESSAGES = 5_000;
const CHUNK = 250;
const KEYS = 40;
const SENT = 2;

describeWithService(["mariadb", "postgres"], "two relay processes", (service) => {
  let database: RelayTestDatabase;
  let folder: string;
  let ledger: string;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    database = await createRelayDatabase(service.name);
    folder = mkdtempSync(join(tmpdir(), "rowpost_two_"));
    ledger = join(folder, "ledger");
    writeFileSync(ledger, "");
  });
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.exitCode === null) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  });

  function start(): ChildProcess {
    const task = { service: service.name, url: database.url, ledger };
    const child = fork(PROGRAM, [JSON.stringify(task)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      execArgv: [],
    });
    children.push(child);
    return child;
  }

  /** What the process tells of its stop, and its exit code. */
  async function stop(child: ChildProcess): Promise<Readonly<Record<string, unknown>>> {
    const told = once(child, "message");
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    const [report] = (await told) as [Record<string, unknown>];
    const [code] = (await exited) as [number | null];
    return { ...report, code };
  }

  const published = (): { readonly pid: string; readonly key: number }[] =>
    readFileSync(ledger, "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => {
        const [pid = "", key] = line.split(" ");
        return { pid, key: Number(key) };
      });

  /** Every third has no ordering key. */
  const orderingKeyOf = (key: number): string | undefined => (key % 3 === 0 ? undefined : `k${key % KEYS}`);

  async function shardsByOwner(): Promise<number[]> {
    const rows = await database.sql(
      "SELECT COUNT(*) AS n FROM local_message_shard WHERE owner IS NOT NULL GROUP BY owner",
    );
    return rows.map((row) => Number(row["n"])).sort((left, right) => left - right);
  }

  test("share the work, and one that is stopped hands over its leases", async () => {
    const [stays, goes] = [start(), start()];
    const soon = { timeout: 40_000, interval: 20 };
    await expect.poll(shardsByOwner, soon).toEqual([8, 8]);
    let report: Readonly<Record<string, unknown>> | undefined;
    let stopped: Promise<void> | undefined;
    for (let from = 0; from < MESSAGES; from += CHUNK) {
      await database.insert(
        Array.from({ length: CHUNK }, (_, index) => {
          const orderingKey = orderingKeyOf(from + index);
          return { key: String(from + index), ...(orderingKey === undefined ? {} : { orderingKey }) };
        }),
      );
      if (from === MESSAGES / 2) {
        // In the middle of what was just inserted.
        stopped = stop(goes).then(async (told) => {
          report = told;
          // It gave its leases back: a dead process's would have lasted half a minute.
          expect(await shardsByOwner()).toHaveLength(1);
        });
      }
      // Two chunks ahead of the relays at most.
      await expect.poll(() => published().length, soon).toBeGreaterThanOrEqual(from - CHUNK);
    }
    await stopped;
    await expect.poll(() => database.states(), soon).toEqual({ [SENT]: MESSAGES });

    const lines = published();
    expect(lines.map(({ key }) => key).sort((left, right) => left - right)).toEqual(
      Array.from({ length: MESSAGES }, (_, key) => key),
    );
    const share = lines.filter(({ pid }) => pid === String(goes.pid)).length;
    console.info(`${service.name}: the stopped relay sent ${share} of ${MESSAGES}`);
    expect(share).toBeGreaterThan(MESSAGES / 10);
    expect(lines.length - share).toBeGreaterThan(MESSAGES / 10);
    for (let key = 0; key < KEYS; key += 1) {
      const numbers = lines.map((line) => line.key).filter((number) => orderingKeyOf(number) === `k${key}`);
      expect(numbers, `k${key}`).toEqual([...numbers].sort((left, right) => left - right));
    }
    expect(report).toMatchObject({ drained: true, unsettled: 0, code: 0, fenced: 0, outcomesLost: 0, sent: share });
    await expect.poll(shardsByOwner, soon).toEqual([16]);
    expect(await stop(stays)).toMatchObject({
      drained: true,
      code: 0,
      fenced: 0,
      recovered: 0,
      sent: MESSAGES - share,
    });
    expect(await shardsByOwner()).toEqual([]);
  }, 120_000);
});
