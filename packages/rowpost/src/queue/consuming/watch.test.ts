import { expect, test } from "vitest";
import { silentLogger } from "../../runtime/logger.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import type { Counters } from "../store.ts";
import { createWatch } from "./watch.ts";

const SILENT = {
  doorbell: { ring: () => undefined, subscribe: () => () => undefined },
  listen: () => Promise.resolve(undefined),
};
const NOBODY = {
  settings: { logger: silentLogger, poll: { minMs: 5, maxMs: 100 } },
  ...{ onNews: () => undefined, onDue: () => undefined, onTick: () => undefined },
};

test("what is due is asked once at a time, and again when the answer has come", async () => {
  const clock = createManualClock();
  const watch = createWatch(SILENT, clock);
  const answers: ((due: ReadonlyMap<number, number>) => void)[] = [];
  const seat = watch.join({
    ...NOBODY,
    store: {
      counters: () => Promise.resolve({ lastIds: new Map(), paused: false }),
      firstDue: () => new Promise((resolve) => void answers.push(resolve)),
    },
  });
  for (let second = 1; second <= 5; second += 1) await clock.advance(1_000);
  expect(answers).toHaveLength(1);
  answers[0]?.(new Map());
  await clock.advance(1_000);
  expect(answers).toHaveLength(2);
  await seat.leave();
});

function countedReads() {
  const counters: Counters = { lastIds: new Map(), paused: false };
  const answers: (() => void)[] = [];
  const read = () => new Promise<Counters>((resolve) => void answers.push(() => resolve(counters)));
  const clock = createManualClock();
  const watch = createWatch(SILENT, clock);
  const seat = watch.join({ ...NOBODY, store: { counters: read, firstDue: () => Promise.resolve(new Map()) } });
  return {
    ...{ clock, seat, answers },
    counters: async () => {
      const asked = seat.counters();
      answers.at(-1)?.();
      await asked;
      return answers.length;
    },
  };
}

test("newer counters are wanted once, and only by a round that had those of an earlier one", async () => {
  const { seat, counters } = countedReads();
  expect([await counters(), seat.wantsNewer()]).toEqual([1, false]);
  expect([await counters(), seat.wantsNewer(), seat.wantsNewer()]).toEqual([1, true, false]);
  expect([await counters(), seat.wantsNewer()]).toEqual([2, false]);
  await seat.leave();
});

test("counters that are forgotten are read again, also while they are being read", async () => {
  const { seat, answers, counters } = countedReads();
  const asked = seat.counters();
  seat.forget();
  answers[0]?.();
  await asked;
  expect([await counters(), await counters()]).toEqual([2, 2]);
  seat.forget();
  expect(await counters()).toBe(3);
  await seat.leave();
});

test("counters that are forgotten are not given while a look reads newer ones", async () => {
  const { clock, seat, answers, counters } = countedReads();
  await counters();
  seat.forget();
  seat.rest(true);
  await clock.advance(5);
  // The look's own read is the second, and has no answer yet.
  expect(answers).toHaveLength(2);
  seat.rest(false);
  const asked = seat.counters();
  expect(answers).toHaveLength(3);
  for (const answer of answers) answer();
  await asked;
  await seat.leave();
});
