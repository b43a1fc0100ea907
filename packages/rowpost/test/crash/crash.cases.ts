/**
 * The relay is killed with SIGKILL at each named fault point, round after round, on a real server.
 * Whatever happened: no message is lost, none is published ahead of an earlier one of its key, and
 * a message is published twice only when the kill came between the broker's receipt and our record
 * of it.
 */
import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FaultPoint } from "../../src/relay/options.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "../relay/bench-database.ts";

/**
 * Where the relay is killed, and whether a batch may lie between the broker and the table at that
 * moment: then its messages, at most one batch per kill, are published again. The others are
 * reached before anything of the process was published, and must leave no copy at all.
 */
const POINTS: readonly (readonly [FaultPoint, "no copies" | "at most a batch"])[] = [
  ["acquired", "no copies"],
  ["scanned", "no copies"],
  ["beforeClaim", "no copies"],
  ["claimed", "no copies"],
  ["beforePublish", "no copies"],
  ["published", "at most a batch"],
  ["beforeSettle", "at most a batch"],
  ["settled", "at most a batch"],
  ["heartbeat", "at most a batch"],
  ["archived", "at most a batch"],
  ["released", "no copies"],
];
const BATCH = 20;
const KEYS = 4;
/**
 * Whoever starts next takes over because the session lock is free, so a long lease costs nothing. A
 * statement has half of it: a server that stands still for a moment must not end a drain.
 */
const TIMES = { leaseMs: 20_000, heartbeatMs: 125, publishTimeoutMs: 250 };
/**
 * Kills at each point with the mark; without it one, as what differs is one statement. 20 is what
 * the project promises and what is run before a release; each costs a second.
 */
const ROUNDS = Number(process.env["ROWPOST_CRASH_ROUNDS"] ?? 3);
const PROGRAM = fileURLToPath(new URL("./relay.process.mjs", import.meta.url));

interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Defines the tests for one server. */
export function defineCrashCases(
  service: RelayTestService,
  { sendingMark }: { readonly sendingMark: "on" | "off" },
): void {
  const roundCount = sendingMark === "on" ? ROUNDS : Math.ceil(ROUNDS / 3);
  let database: RelayTestDatabase;
  let inserted = 0;

  beforeAll(async () => {
    database = await createRelayDatabase(service);
  });
  afterAll(() => database.drop());

  function runRelay(ledger: string, kill: { readonly point?: FaultPoint; readonly hit?: number }): Promise<Ending> {
    const task = { service, url: database.url, ledger, sendingMark, ...TIMES, ...kill };
    const child = fork(PROGRAM, [JSON.stringify(task)], { stdio: "inherit", execArgv: [] });
    return new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
  }

  async function insertRound(): Promise<string[]> {
    const messages = Array.from({ length: 2 * BATCH }, () => {
      inserted += 1;
      // Every fifth has no ordering key.
      return { key: String(inserted), ...(inserted % 5 === 0 ? {} : { orderingKey: `k${inserted % KEYS}` }) };
    });
    await database.insert(messages);
    return messages.map(({ key }) => key);
  }

  async function rounds(point: FaultPoint, copies: (typeof POINTS)[number][1]): Promise<void> {
    const ledger = join(tmpdir(), `rowpost_ledger_${process.pid}_${randomBytes(4).toString("hex")}`);
    writeFileSync(ledger, "");
    const expected: string[] = [];
    let kills = 0;
    try {
      for (let round = 0; kills < roundCount && round < 2 * roundCount; round += 1) {
        expected.push(...(await insertRound()));
        // The first time of a process nothing of it has been published yet; later hits find other
        // batches under way.
        const often = copies === "at most a batch" && point !== "archived";
        const { code, signal } = await runRelay(ledger, { point, hit: often ? 1 + (round % 2) : 1 });
        if (signal === "SIGKILL") {
          kills += 1;
          continue;
        }
        // A drain may be over before housekeeping comes round, or the second heartbeat; every other
        // point lies on its way.
        expect(code).toBe(0);
        expect(["archived", "heartbeat"]).toContain(point);
      }
      expect(await runRelay(ledger, {})).toEqual({ code: 0, signal: null });
      expect(kills).toBe(roundCount);
      judge(point, expected, readFileSync(ledger, "utf8"), copies === "no copies" ? 0 : kills * BATCH);
    } finally {
      rmSync(ledger, { force: true });
    }
  }

  function judge(point: FaultPoint, expected: readonly string[], ledger: string, allowed: number): void {
    const published = ledger
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "");
    const first = [...new Set(published)];
    const lost = expected.filter((key) => !first.includes(key));
    const keyOf = (key: string): string => (Number(key) % 5 === 0 ? `alone ${key}` : String(Number(key) % KEYS));
    const last = new Map<string, number>();
    let reordered = 0;
    for (const key of first) {
      if (Number(key) < (last.get(keyOf(key)) ?? 0)) reordered += 1;
      last.set(keyOf(key), Number(key));
    }
    const duplicates = published.length - first.length;
    console.info(
      `${service} ${sendingMark} ${point}: ${roundCount} kills, lost ${lost.length}, reordered ${reordered}, duplicates ${duplicates} of at most ${allowed}`,
    );
    expect(lost).toEqual([]);
    expect(reordered).toBe(0);
    expect(duplicates).toBeLessThanOrEqual(allowed);
  }

  describe.sequential(`killed at a fault point, sendingMark ${sendingMark}`, () => {
    it.each(POINTS)("%s: %s", rounds, 180_000);
  });
}
