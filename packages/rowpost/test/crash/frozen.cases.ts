/**
 * Two relays on one table. One is frozen with SIGSTOP past its lease while it holds a claimed
 * batch; the other takes over and sends everything; then the first goes on where it was. Its late
 * writes must change nothing, and it must not publish what it had only claimed.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { untilStopped } from "../own-process.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "../relay/bench-database.ts";

const PROGRAM = fileURLToPath(new URL("./relay.process.mjs", import.meta.url));
const MESSAGES = 60;
const BATCH = 20;

/** Defines the tests for one server. */
function defineFrozenCases(service: RelayTestService): void {
  let database: RelayTestDatabase;
  let folder: string;
  let ledger: string;

  beforeEach(async () => {
    database = await createRelayDatabase(service);
    folder = mkdtempSync(join(tmpdir(), "rowpost_frozen_"));
    ledger = join(folder, "ledger");
    writeFileSync(ledger, "");
    await database.insert(
      Array.from({ length: MESSAGES }, (_, index) => ({ key: String(index), orderingKey: `k${index % 3}` })),
    );
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  });

  function start(task: Readonly<Record<string, unknown>>): ChildProcess {
    const all = { service, url: database.url, ledger, leaseMs: 400, sendingMark: "on", onSent: "keep", ...task };
    return fork(PROGRAM, [JSON.stringify(all)], { stdio: "inherit", execArgv: [] });
  }

  const published = (): string[] =>
    readFileSync(ledger, "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "");

  it.each([
    ["claimed", 0],
    ["beforePublish", 0],
    ["published", BATCH],
    ["beforeSettle", BATCH],
  ] as const)("frozen at %s: at most %i copies", async (point, copies) => {
    const frozen = start({ point, hit: 1, signal: "SIGSTOP" });
    await untilStopped(frozen.pid ?? 0);
    const heir = start({});
    expect(await once(heir, "exit")).toEqual([0, null]);
    const before = await rows();
    const byHeir = published();
    frozen.kill("SIGCONT");
    await once(frozen, "exit");
    expect(await rows()).toEqual(before);
    expect(published()).toEqual(byHeir);
    expect(new Set(byHeir).size).toBe(MESSAGES);
    expect(byHeir.length - MESSAGES).toBeLessThanOrEqual(copies);
    expect(await database.states()).toEqual({ 2: MESSAGES });
  });

  async function rows(): Promise<readonly unknown[]> {
    return await database.sql(
      "SELECT id, state, message_id, delivery_count, retry_count, lock_version FROM local_message ORDER BY id",
    );
  }
}

/** Binds the cases: SIGSTOP and /proc are Linux. */
export function describeFrozen(service: RelayTestService): void {
  describe.runIf(process.platform === "linux")(`a frozen relay on ${service}`, () => defineFrozenCases(service));
}
