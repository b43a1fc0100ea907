import type { GroupPartition, GroupStatus } from "rowpost/queue";
import { describe, expect, test } from "vitest";
import { type Growth, growthOf } from "./growth.ts";
import { deadLetters, queueConditions, type TopicRead } from "./queue-rules.ts";
import { RULE_DEFAULTS } from "./rules.ts";

const NOW = Date.parse("2026-11-15T12:00:00.000Z");
const MINUTE = 60_000;
const NONE = { count: 0, atLeast: false };
const MONTHS = { months: [202_611, 202_612], retentionMonths: null };

function partition(more: Partial<GroupPartition> = {}): GroupPartition {
  return {
    partition: 3,
    nextId: "1",
    lag: NONE,
    lagMs: 0,
    head: undefined,
    movedMsAgo: 0,
    waiting: NONE,
    behind: NONE,
    dead: NONE,
    oldestWaiting: undefined,
    oldestUnfinishedMs: 0,
    member: undefined,
    ...more,
  };
}

function group(more: Partial<GroupStatus> = {}): GroupStatus {
  return {
    topic: "orders",
    group: "billing",
    paused: undefined,
    lag: NONE,
    lagMs: 0,
    oldestUnfinishedMs: 0,
    waiting: NONE,
    dead: NONE,
    partitions: [partition()],
    ...more,
  };
}

function found(groups: readonly GroupStatus[], read: Partial<TopicRead> = {}, dead: Growth = {}, clockMs = 0) {
  const topic = { topic: "orders", groups, ...MONTHS, ...read };
  return queueConditions(RULE_DEFAULTS, topic, { clockMs, dead, nowMs: NOW });
}

function conditions(status: GroupStatus, before: Growth | null = null, clockMs = 0) {
  const grown = growthOf(before, deadLetters([status]), { clockMs, isPart: false });
  const told = found([status], {}, grown, clockMs);
  return { grown, told: told.map(({ rule, severity, subject }) => `${rule} ${subject} ${severity}`) };
}

const dead = (count: number) => group({ dead: { count, atLeast: false } });

describe("a group", () => {
  test("is behind by its oldest message that is due, and not by what comes later", () => {
    expect(conditions(group({ partitions: [partition({ lagMs: 9 * MINUTE })] })).told).toEqual([]);
    const late = partition({ lagMs: 11 * MINUTE, head: { id: "7", key: undefined, type: undefined } });
    expect(conditions(group({ partitions: [partition(), late] })).told).toEqual(["queue-lag orders/billing warning"]);
    const worse = partition({ partition: 4, lagMs: 61 * MINUTE });
    expect(conditions(group({ partitions: [late, worse] })).told).toEqual(["queue-lag orders/billing critical"]);
    const again = (minutes: number) =>
      partition({
        oldestUnfinishedMs: 24 * 60 * MINUTE,
        oldestWaiting: {
          id: "9",
          attempt: 0,
          error: undefined,
          nextAttemptAt: new Date(NOW + minutes * MINUTE).toISOString(),
        },
      });
    // A message delayed until tomorrow, and one that is due and not taken.
    expect(conditions(group({ partitions: [again(5)] })).told).toEqual([]);
    expect(conditions(group({ partitions: [again(-11)] })).told).toEqual(["queue-lag orders/billing warning"]);
    const facts = { id: "9", partition: 3, member: "" };
    expect(found([group({ partitions: [late, again(-12)] })])).toMatchObject([{ facts }]);
  });

  test("that is paused is not behind, and the pause is told; a replay reads what is old", () => {
    const partitions = [partition({ lagMs: 61 * MINUTE })];
    const paused = { at: "2026-11-15T11:00:00.000Z", author: "wang", reason: "wrong prices" };
    expect(conditions(group({ partitions, paused })).told).toEqual(["queue-paused orders/billing info"]);
    expect(conditions(group({ partitions, group: "billing@replay" })).told).toEqual([]);
  });

  test("has new dead letters for the window, and old ones from the critical number on", () => {
    const first = conditions(dead(7));
    expect(first.told).toEqual([]);
    const same = conditions(dead(7), first.grown, MINUTE);
    expect(same.told).toEqual([]);
    const more = conditions(dead(8), same.grown, 2 * MINUTE);
    expect(more.told).toEqual(["queue-dead orders/billing warning"]);
    const still = conditions(dead(8), more.grown, 6 * MINUTE);
    expect(still.told).toEqual(["queue-dead orders/billing warning"]);
    expect(conditions(dead(8), still.grown, 7 * MINUTE).told).toEqual([]);
    expect(conditions(dead(100)).told).toEqual(["queue-dead orders/billing critical"]);
    // Looked at, with none found.
    const none = conditions(dead(0), first.grown, MINUTE);
    expect(none.grown).toEqual({});
    expect(conditions(dead(1), none.grown, 2 * MINUTE).told).toEqual(["queue-dead orders/billing warning"]);
  });
});

describe("the tables of a topic", () => {
  const consumed = [
    group({ partitions: [partition({ member: { owner: "a", label: "web-7", since: undefined, seenMsAgo: 0 } })] }),
  ];
  const read = { groups: consumed, ...MONTHS, retentionMonths: 2 };

  test.each([
    ["nothing while they are there", read, "2026-11-15T12:00:00Z", []],
    [
      "the next month, though a consumer runs",
      { ...read, months: [202_611] },
      "2026-11-02T12:00:00Z",
      [{ missing: 202_612 }],
    ],
    ["this month", { ...read, months: [202_610] }, "2026-11-02T12:00:00Z", [{ missing: 202_611 }]],
    ["over the turn of the year", { ...read, months: [202_612] }, "2026-12-30T12:00:00Z", [{ missing: 202_701 }]],
    ["not yet, where nobody consumes", { ...read, groups: [], months: [202_611] }, "2026-11-15T12:00:00Z", []],
    [
      "shortly before the month ends",
      { ...read, groups: [], months: [202_611] },
      "2026-11-28T12:00:00Z",
      [{ missing: 202_612 }],
    ],
    ["nothing of a topic that nobody uses", { ...read, groups: [], months: [202_601] }, "2026-02-28T12:00:00Z", []],
    [
      "a month that is past the retention",
      { ...read, months: [202_608, 202_609, ...read.months] },
      "2026-11-15T12:00:00Z",
      [{ late: 202_608 }],
    ],
    [
      "none without a retention",
      { ...read, retentionMonths: null, months: [202_001, ...read.months] },
      "2026-11-15T12:00:00Z",
      [],
    ],
  ])("%s", (_, topic, now, told) => {
    const at = { clockMs: 0, dead: {}, nowMs: Date.parse(now) };
    const tables = queueConditions(RULE_DEFAULTS, { topic: "orders", ...topic }, at);
    expect(tables.map(({ facts }) => ({ [String(facts["kind"])]: facts["month"] }))).toEqual(told);
  });
});
