/**
 * Two relays on one table. One is frozen with SIGSTOP past its lease while it holds a claimed
 * batch; the other takes over and sends everything; then the first goes on where it was. Its late
 * writes must change nothing, and it must not publish what it had only claimed.
 */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { untilStopped } from "../own-process.ts";
import type { RelayTestService } from "../relay/bench-database.ts";
import { useLedger } from "./ledger.ts";

const MESSAGES = 60;
const BATCH = 20;

/** Defines the tests for one server. */
function defineFrozenCases(service: RelayTestService): void {
  const bench = useLedger(service, MESSAGES, 400);
  const { published, start } = bench;

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
    expect(await bench.database.states()).toEqual({ 2: MESSAGES });
  });

  async function rows(): Promise<readonly unknown[]> {
    return await bench.database.sql(
      "SELECT id, state, message_id, delivery_count, retry_count, lock_version FROM local_message ORDER BY id",
    );
  }
}

/** Binds the cases: SIGSTOP and /proc are Linux. */
export function describeFrozen(service: RelayTestService): void {
  describe.runIf(process.platform === "linux")(`a frozen relay on ${service}`, () => defineFrozenCases(service));
}
