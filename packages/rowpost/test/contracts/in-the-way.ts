/** Another connection that stands in the way: what is started meanwhile waits for its locks. */
import assert from "node:assert/strict";
import type { Session } from "../../src/databases/database.ts";
import { until } from "../../src/testing/contract-run.ts";
import type { CountWaiting } from "./lock-waits.ts";
import type { RunSql } from "./test-dialect.ts";

/** What happens while another connection's transaction is open. */
export interface WhileOpen<T> {
  /** Begun under the locks; its outcome is awaited after they are gone. */
  start(): Promise<T>;
  /** Connections that then wait for a lock, unless it has come to its end without. Default 1. */
  readonly waiters?: number | undefined;
  /** Once they wait: any SQL in the locking transaction, which then commits. */
  readonly meanwhile?: ((run: RunSql) => Promise<void> | undefined) | undefined;
}

/** What it stands on. */
interface Ground {
  readonly countWaiting: CountWaiting | undefined;
  blocker(): Promise<Session>;
}

/** Resolves when that many connections wait for a lock, or when `unless` says so. */
export async function waitingForLocks(
  { countWaiting }: Pick<Ground, "countWaiting">,
  connections: number,
  unless: () => boolean = () => false,
): Promise<void> {
  assert.ok(countWaiting !== undefined, "connections wait for locks (need: rowLocks)");
  await until(
    `${connections} connections wait for a lock`,
    async () => unless() || (await countWaiting()) >= connections,
    { withinMs: 4_000 },
  );
}

/**
 * Starts something while a third connection has done `first` in an open transaction, and returns
 * what comes of it once that connection has committed.
 */
export async function whileOpen<T>(
  ground: Ground,
  first: (run: RunSql) => Promise<unknown>,
  interleaving: WhileOpen<T>,
): Promise<T> {
  const { waiters = 1 } = interleaving;
  let started: Promise<T> | undefined;
  const blocker = await ground.blocker();
  try {
    await blocker.transaction(async (tx) => {
      const run: RunSql = (text) => tx.run({ name: "inTheWay", text, params: [] });
      await first(run);
      started = interleaving.start();
      let ended = false;
      void started
        .catch(() => undefined)
        .finally(() => {
          ended = true;
        });
      // What passes locked rows over does not wait; then there is nothing to wait for.
      if (waiters > 0) await waitingForLocks(ground, waiters, () => ended);
      await interleaving.meanwhile?.(run);
    });
  } finally {
    // Also after a failure: what was started must not reach into the next case.
    await started?.catch(() => undefined);
  }
  assert.ok(started !== undefined);
  return await started;
}
