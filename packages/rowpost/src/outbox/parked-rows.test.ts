import { describe, expect, it } from "vitest";
import { silentLogger } from "../runtime/logger.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import type { Outlet, Outlets } from "./outlets.ts";
import { createParkedRows, type ParkedRows } from "./parked-rows.ts";
import type { ScannedMessage } from "./relay-store.ts";

interface ParkCall {
  readonly ids: readonly string[];
  readonly parkMs: number;
  readonly end: (error?: Error) => void;
}

function setUp(): { readonly parked: ParkedRows; readonly calls: ParkCall[]; readonly woken: () => number } {
  const outlet = { name: "away", gate: { open: true } } as Outlet;
  const outlets = { of: () => outlet, roomOf: () => 500, stoppedMs: () => 5_000 } as unknown as Outlets;
  const calls: ParkCall[] = [];
  let woken = 0;
  const parked = createParkedRows({
    store: {
      housekeeping: {
        park: ({ rows, parkMs }: { readonly rows: readonly { readonly id: string }[]; readonly parkMs: number }) =>
          new Promise<number>((resolve, reject) => {
            const end = (error?: Error): void => (error === undefined ? resolve(rows.length) : reject(error));
            calls.push({ ids: rows.map(({ id }) => id), parkMs, end });
          }),
      },
    } as never,
    keeper: { fence: () => ({ owner: "o", epochs: [1] }) },
    outlets,
    settings: { clock: createManualClock(), batchSize: 500, logger: silentLogger },
    wake: () => (woken += 1),
  });
  return { parked, calls, woken: () => woken };
}

function row(id: number): ScannedMessage {
  return {
    ...{ id: String(id), shard: 0, type: "t", key: `k${id}`, topic: "bad", body: "{}", headers: null },
    ...{ contentType: null, orderingKey: null, retryCount: 0, deliveryCount: 0, lockVersion: 0, deliverAtMs: null },
    ...{ resend: false, waitingMs: 0, due: false },
  };
}

describe("parked rows", () => {
  it("are not gone before the statement that brings them forward has an answer", async () => {
    const { parked, calls, woken } = setUp();
    const parking = parked.park([row(1), row(2)]);
    calls[0]?.end();
    await parking;
    expect(parked.empty).toBe(false);
    parked.release();
    expect(calls[1]).toMatchObject({ ids: ["1", "2"], parkMs: 0 });
    expect(parked.empty, "a drain that stopped here would leave them behind").toBe(false);
    calls[1]?.end();
    await parked.idle();
    expect([parked.empty, woken()]).toEqual([true, 1]);
  });

  it("are tried again after a statement that failed", async () => {
    const { parked, calls, woken } = setUp();
    const parking = parked.park([row(2), row(1)]);
    calls[0]?.end();
    await parking;
    parked.release();
    calls[1]?.end(new Error("lock wait timeout"));
    await parked.idle();
    expect([parked.empty, woken()]).toEqual([false, 0]);
    parked.release();
    expect(calls[2]).toMatchObject({ ids: ["1", "2"], parkMs: 0 });
    calls[2]?.end();
    await parked.idle();
    expect([parked.empty, woken()]).toEqual([true, 1]);
  });
});
