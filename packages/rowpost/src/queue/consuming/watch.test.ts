import { expect, test } from "vitest";
import type { AppendNews } from "../../databases/database.ts";
import { createDoorbell } from "../../databases/sql/doorbell.ts";
import { queueIdOfDate } from "../../message/queue-id.ts";
import { silentLogger } from "../../runtime/logger.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import type { Counters } from "../store.ts";
import { createWatch } from "./watch.ts";

const SILENT = {
  doorbell: { ring: () => undefined, subscribe: () => () => undefined },
  listen: () => Promise.resolve(undefined),
};
const NOBODY = {
  settings: { topic: "orders", logger: silentLogger, poll: { minMs: 5, maxMs: 100 } },
  onNews: () => undefined,
  onDue: () => undefined,
  onTick: () => undefined,
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
    clock,
    seat,
    answers,
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
  // The second read is the look's own, still unanswered.
  expect(answers).toHaveLength(2);
  seat.rest(false);
  const asked = seat.counters();
  expect(answers).toHaveLength(3);
  for (const answer of answers) answer();
  await asked;
  await seat.leave();
});

const [FIRST, SECOND, NEXT_MONTH] = ["20260701", "20260702", "20260801"].map(
  (date) => queueIdOfDate(new Date(`${date.slice(0, 4)}-${date.slice(4, 6)}-${date.slice(6)}T00:00:00Z`)) ?? "",
) as [string, string, string];

function heardBy() {
  const doorbell = createDoorbell<AppendNews>();
  const clock = createManualClock();
  const watch = createWatch({ doorbell, listen: SILENT.listen }, clock);
  const answers: ((counters: Counters) => void)[] = [];
  const read = () => new Promise<Counters>((resolve) => void answers.push(resolve));
  let woken = 0;
  const seat = watch.join({
    ...NOBODY,
    onNews: () => {
      woken += 1;
    },
    store: { counters: read, firstDue: () => Promise.resolve(new Map()) },
  });
  const answer = (lastId: string): void => answers.at(-1)?.({ lastIds: new Map([[0, lastId]]), paused: false });
  return {
    seat,
    clock,
    answers,
    answer,
    woken: () => woken,
    ring: (news?: AppendNews) => doorbell.ring(news),
    first: async (lastId: string): Promise<void> => {
      const asked = seat.counters();
      answer(lastId);
      await asked;
      seat.rest(true);
    },
  };
}

test("an append that is heard of is looked for without a look at the counters", async () => {
  const { seat, clock, answers, woken, ring, first } = heardBy();
  await first(FIRST);
  await clock.advance(1);
  ring({ topic: "orders", lastId: SECOND });
  expect([woken(), answers.length]).toEqual([1, 1]);
  expect((await seat.counters()).lastIds.get(0)).toBe(SECOND);
  expect([answers.length, seat.wantsNewer()]).toEqual([1, true]);
  ring({ topic: "others", lastId: NEXT_MONTH });
  expect(woken()).toBe(1);
  await seat.leave();
});

test("a ring without news comes before all that is heard behind it", async () => {
  const { seat, clock, answers, answer, woken, ring, first } = heardBy();
  await first(FIRST);
  ring();
  ring({ topic: "orders", lastId: SECOND });
  expect([woken(), answers.length]).toEqual([0, 1]);
  await clock.advance(0);
  expect(answers).toHaveLength(2);
  answer(FIRST);
  await clock.advance(0);
  expect(woken()).toBe(1);
  await seat.leave();
});

test("what is heard while the counters are read is not lost", async () => {
  const { seat, answer, ring, first } = heardBy();
  await first(FIRST);
  seat.rest(false);
  seat.forget();
  const asked = seat.counters();
  ring({ topic: "orders", lastId: SECOND });
  answer(FIRST);
  expect((await asked).lastIds.get(0)).toBe(SECOND);
  seat.forget();
  const behindPause = seat.counters();
  ring();
  ring({ topic: "orders", lastId: SECOND });
  answer(FIRST);
  expect((await behindPause).lastIds.get(0)).toBe(FIRST);
  await seat.leave();
});

test("an id of another month is a reason to look at the counters, which alone say that a month is over", async () => {
  const { seat, clock, answers, woken, ring, first } = heardBy();
  await first(FIRST);
  ring({ topic: "orders", lastId: NEXT_MONTH });
  await clock.advance(0);
  expect([woken(), answers.length]).toEqual([0, 2]);
  await seat.leave();
});
