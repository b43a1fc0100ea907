import { beforeEach, expect, it } from "vitest";
import { createManualClock, type ManualClock } from "../../testing/manual-clock.ts";
import { createSteppedClock } from "./stepped-clock.ts";

const HOUR_MS = 3_600_000;

let clock: ManualClock;
/** Clock of the database; the monotonic one is the manual clock's. */
let databaseMs: number;
/** Answers of the next calls to bring forward; an error is thrown. */
let answers: (number | Error)[];
let calls: number;
let told: unknown[];
let look: () => Promise<number>;

beforeEach(() => {
  clock = createManualClock();
  [databaseMs, answers, calls, told] = [5 * HOUR_MS, [], 0, []];
  look = createSteppedClock({
    housekeeping: {
      clockMs: async () => databaseMs,
      async shortenWaits({ beyondMs }) {
        calls += 1;
        expect(beyondMs).toBe(600_000);
        const answer = answers.shift() ?? 0;
        if (answer instanceof Error) throw answer;
        return answer;
      },
    },
    settings: {
      clock,
      longestBackoffMs: 600_000,
      logger: {
        debug: () => undefined,
        info: () => undefined,
        warn: (_line, fields) => void told.push(fields),
        error: () => undefined,
      },
    },
  });
});

/** Advances both clocks, the database's by `offMs` more. */
async function pass(ms: number, offMs = 0): Promise<void> {
  databaseMs += ms + offMs;
  await clock.advance(ms);
}

it("does nothing while both clocks go on, one of them is corrected little by little, or is set ahead", async () => {
  for (const offMs of [0, 40, -40, -4_000, HOUR_MS, -4_000]) {
    await look();
    await pass(10_000, offMs);
  }
  await look();
  expect([calls, told]).toEqual([0, []]);
});

it("brings forward what there is at a step back, batch by batch, and once", async () => {
  await look();
  await pass(10_000, -2 * HOUR_MS);
  answers = [500, 500, 7];
  expect(await look()).toBe(1_007);
  await pass(10_000);
  expect(await look()).toBe(0);
  expect([calls, told]).toEqual([3, [{ byMs: 2 * HOUR_MS, broughtForward: 1_007 }]]);
});

it("tries again at the next look when the database did not answer", async () => {
  await look();
  await pass(10_000, -HOUR_MS);
  answers = [new Error("away")];
  await expect(look()).rejects.toThrow("away");
  await pass(10_000);
  answers = [3];
  expect(await look()).toBe(3);
  expect([calls, told]).toEqual([2, [{ byMs: HOUR_MS, broughtForward: 3 }]]);
});
