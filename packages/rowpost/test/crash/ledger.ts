/**
 * A database with waiting messages of three ordering keys, and relays in processes of their own
 * that publish them into one ledger file (relay.process.mjs).
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach } from "vitest";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "../relay/bench-database.ts";

const PROGRAM = fileURLToPath(new URL("./relay.process.mjs", import.meta.url));

export interface LedgerBench {
  readonly database: RelayTestDatabase;
  /** Starts a relay that drains the table; `task` is what its head says. */
  readonly start: (task: Readonly<Record<string, unknown>>) => ChildProcess;
  /** Message keys in the order of the ledger. */
  readonly published: () => string[];
}

/** Sets up before each test of the block and cleans up after it. */
export function useLedger(service: RelayTestService, messages: number, leaseMs: number): LedgerBench {
  let database: RelayTestDatabase | undefined;
  let folder = "";
  let ledger = "";

  beforeEach(async () => {
    database = await createRelayDatabase(service);
    folder = mkdtempSync(join(tmpdir(), "rowpost_ledger_"));
    ledger = join(folder, "ledger");
    writeFileSync(ledger, "");
    await database.insert(
      Array.from({ length: messages }, (_, index) => ({ key: String(index), orderingKey: `k${index % 3}` })),
    );
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true, force: true });
    await database?.drop();
  });

  const bench: LedgerBench = {
    get database() {
      if (database === undefined) throw new Error("only within a test");
      return database;
    },
    start(task) {
      const { url } = bench.database;
      const all = { service, url, ledger, leaseMs, sendingMark: "on", onSent: "keep", ...task };
      return fork(PROGRAM, [JSON.stringify(all)], { stdio: "inherit", execArgv: [] });
    },
    published() {
      const lines = readFileSync(ledger, "utf8").trim().split("\n");
      return lines.map((line) => line.split(" ")[1] ?? "");
    },
  };
  return bench;
}
