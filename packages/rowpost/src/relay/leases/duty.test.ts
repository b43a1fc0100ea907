import { expect, it } from "vitest";
import { DatabaseUnavailableError } from "../../runtime/errors.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import type { Failing } from "../reports.ts";
import { createDuty } from "./duty.ts";

const LEASE_MS = 10_000;

function bench() {
  const clock = createManualClock();
  const nothing = (): void => undefined;
  const said: string[] = [];
  const logger = { debug: nothing, info: nothing, warn: (line: string) => said.push(line), error: nothing };
  const failing = new Map<string, Failing>();
  let looks = 0;
  const duty = createDuty({
    settings: { clock, leaseMs: LEASE_MS, logger },
    keeper: { heldCount: 16, giveUp: async () => undefined, rejoin: nothing },
    reports: { failing: (part) => failing.get(part) },
    store: {
      scan: async () => {
        looks += 1;
        return [];
      },
    },
  });
  return {
    duty,
    said,
    looks: () => looks,
    fails: (part: string): void => {
      const nowMs = clock.monotonicMs();
      failing.set(part, { sinceMs: failing.get(part)?.sinceMs ?? nowMs, lastMs: nowMs, error: "no" });
    },
    /** One heartbeat a second, each followed by `work`. */
    seconds: async (count: number, work: () => void, heartbeat = () => duty.heartbeatWorked()): Promise<void> => {
      for (let second = 0; second < count; second += 1) {
        await heartbeat();
        work();
        await clock.advance(1_000);
      }
    },
  };
}

it("leaves after more than a lease of failures, once", async () => {
  const { duty, fails, said, seconds } = bench();
  await seconds(11, () => fails("relay"));
  expect(duty.isOn).toBe(true);
  await seconds(2, () => fails("relay"));
  expect([duty.isOn, said.length]).toEqual([false, 1]);
});

it("stays when nothing was tried since a failure: the broker is away, or nothing is to be done", async () => {
  const { duty, fails, seconds } = bench();
  fails("relay");
  await seconds(60, () => undefined);
  expect(duty.isOn).toBe(true);
});

it("stays when the database was away as a whole, until its own work has failed for a lease since", async () => {
  const { duty, fails, seconds } = bench();
  await seconds(
    60,
    () => fails("relay"),
    async () => duty.heartbeatFailed(new DatabaseUnavailableError("away")),
  );
  await seconds(10, () => fails("relay"));
  expect(duty.isOn).toBe(true);
  await seconds(3, () => fails("relay"));
  expect(duty.isOn).toBe(false);
});

it("comes back at the first scan that works, and later each time that it could not work then", async () => {
  const { duty, fails, said, seconds } = bench();
  const pauses: number[] = [];
  for (let time = 0; time < 3; time += 1) {
    await seconds(13, () => fails("relay"));
    expect([duty.isOn, said.length]).toEqual([false, time + 1]);
    let pause = 0;
    for (; !(await duty.look()); pause += 1)
      await seconds(
        1,
        () => undefined,
        async () => undefined,
      );
    pauses.push(pause);
  }
  expect(pauses).toEqual([0, 19, 39]);
});

it("waits two leases after settles that failed, for others to get what it could not record", async () => {
  const { duty, fails, seconds } = bench();
  await seconds(13, () => fails("settle"));
  await seconds(
    10,
    () => undefined,
    async () => undefined,
  );
  expect(await duty.look()).toBe(false);
  await seconds(
    10,
    () => undefined,
    async () => undefined,
  );
  expect(await duty.look()).toBe(true);
});
