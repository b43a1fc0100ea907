import { describe, expect, test } from "vitest";
import { type StepInput, step } from "./lifecycle.ts";
import { type Condition, RULE_DEFAULTS } from "./rules.ts";
import { type AlertsState, NO_ALERTS, type NoticeItem, parseState } from "./state.ts";

const FAILED: Condition = {
  rule: "failed",
  subject: "orders",
  severity: "warning",
  value: 1,
  facts: { count: 1, more: 0 },
};
const OLDEST: Condition = {
  rule: "oldest-due",
  subject: "",
  severity: "warning",
  value: 400_000,
  facts: { id: "7", topic: "orders", waitingMs: 400_000 },
};
const NO_RELAY: Condition = { rule: "no-relay", subject: "", severity: "critical", value: 1, facts: {} };
const MINUTE = 60_000;

/** A series of steps, 15 s each by default. */
function life(input: Partial<StepInput> = {}, from: AlertsState = NO_ALERTS) {
  let state = from;
  let steps = 0;
  const told: (readonly NoticeItem[])[] = from.notices.map(({ items }) => items);
  function go(conditions: readonly Condition[], elapsedMs = 15_000, more: Partial<StepInput> = {}) {
    steps += 1;
    state = step(state, {
      elapsedMs,
      conditions,
      at: "2026-11-24T04:00:00.000Z",
      rules: RULE_DEFAULTS,
      silences: [],
      channels: [{ name: "night", from: "info" }],
      noticeId: `n${steps}`,
      ...input,
      ...more,
    });
    const fresh = state.notices.slice(told.length);
    told.push(...fresh.map(({ items }) => items));
    return fresh.map(({ items }) => items.map(({ kind, subject }) => `${kind} ${subject}`));
  }
  function during(ms: number, conditions: readonly Condition[], more: Partial<StepInput> = {}) {
    return Array.from({ length: ms / 15_000 }, () => go(conditions, 15_000, more)).flat();
  }
  return { go, during, told, state: () => state };
}

describe("the life of an alert", () => {
  test("fires, is told once after what fires with it was gathered, and its end is told with duration and peak", () => {
    const { during, go, told } = life();
    expect(go([FAILED])).toEqual([]);
    expect(go([{ ...FAILED, value: 9 }])).toEqual([["firing orders"]]);
    expect(during(10 * MINUTE, [FAILED])).toEqual([]);
    expect(during(2 * MINUTE, [])).toEqual([["resolved orders"]]);
    expect(told.at(-1)?.[0]).toMatchObject({ peak: 9, forMs: 10 * MINUTE + 15_000 });
    expect(during(40 * MINUTE, [])).toEqual([]);
  });

  test("waits for as long as the rule says, and what ends before is never told", () => {
    const { during } = life();
    expect(during(45_000, [NO_RELAY])).toEqual([]);
    expect(during(10 * MINUTE, [])).toEqual([]);
    expect(during(75_000, [NO_RELAY])).toEqual([]);
    expect(during(15_000, [NO_RELAY])).toEqual([["firing "]]);
  });

  test("is told again every four hours, and at once when it gets graver", () => {
    const { during, go } = life();
    expect(during(MINUTE, [FAILED])).toEqual([["firing orders"]]);
    expect(go([{ ...FAILED, severity: "critical" }])).toEqual([["worse orders"]]);
    expect(during(4 * 60 * MINUTE, [FAILED])).toEqual([["still orders"]]);
  });

  test("that is away for less than two minutes was never away", () => {
    const { during } = life();
    const told = [];
    for (let turn = 0; turn < 6; turn += 1) told.push(...during(MINUTE, [FAILED]), ...during(105_000, []));
    expect(told).toEqual([["firing orders"]]);
    expect(during(3 * MINUTE, [])).toEqual([["resolved orders"]]);
  });

  test("that follows from no relay says nothing, begins nothing and ends nothing meanwhile", () => {
    const { during } = life();
    expect(during(MINUTE, [OLDEST])).toEqual([["firing "]]);
    expect(during(10 * MINUTE, [NO_RELAY])).toEqual([["firing "]]);
    expect(during(3 * MINUTE, [OLDEST])).toEqual([["resolved "]]);
    expect(during(3 * MINUTE, [])).toEqual([["resolved "]]);
  });

  test("that is silenced is not told, and is when the silence ends before it does", () => {
    const { during } = life();
    const silences = [{ rule: "failed", subject: "orders" }];
    expect(during(MINUTE, [FAILED], { silences })).toEqual([]);
    expect(during(MINUTE, [FAILED, { ...FAILED, subject: "stock" }], { silences })).toEqual([["firing stock"]]);
    expect(during(MINUTE, [FAILED])).toEqual([["firing orders"]]);
  });

  test("of many at once is one notice, for the channels whose severity it has", () => {
    const channels = [
      { name: "night", from: "critical" as const },
      { name: "day", from: "info" as const },
    ];
    const many = Array.from({ length: 30 }, (_, index) => ({ ...FAILED, subject: `t${index}` }));
    const { during, state } = life({ channels });
    expect(during(MINUTE, many)).toHaveLength(1);
    expect(Object.keys(state().notices[0]?.deliveries ?? {})).toEqual(["day"]);
  });

  test("measures no time by a clock that can be set: only what has passed counts", () => {
    const { go } = life();
    // A step of no length, or backwards, changes nothing.
    for (const elapsedMs of [0, -3_600_000, 0]) expect(go([NO_RELAY], elapsedMs)).toEqual([]);
    expect(go([NO_RELAY], MINUTE)).toEqual([]);
    expect(go([NO_RELAY])).toEqual([["firing "]]);
  });
});

describe("the state of an earlier version", () => {
  const KEPT = { sinceMs: 0, since: "2026-11-24T03:00:00.000Z", seenMs: 60_000, firedMs: 0, toldSeverity: "warning" };
  const alert = (subject: string, more: object) => ({
    [`failed|${subject}`]: { ...FAILED, ...KEPT, subject, peak: 9, changes: [0, 30_000], isFlapping: true, ...more },
  });
  const notice = {
    id: "n",
    at: "2026-11-24T03:00:00.000Z",
    isFallback: true,
    deliveries: { night: { tries: 1, nextMs: 0 } },
    items: [{ ...FAILED, kind: "flapping", since: "2026-11-24T03:00:00.000Z", forMs: 0, peak: 9 }],
  };
  const stored = JSON.stringify({
    owner: "e",
    clockMs: 60_000,
    history: [],
    failed: { orders: { count: 1, roseMs: 0 } },
    channels: {},
    queue: { lookedMs: 0, isThere: true, after: "", topics: [] },
    doctor: { lookedMs: 0, found: [] },
    alerts: {
      ...alert("orders", { phase: "firing", toldMs: 15_000 }),
      ...alert("stock", { phase: "ok", toldMs: 15_000 }),
      ...alert("points", { phase: "ok", toldMs: null }),
    },
    notices: [notice],
  });

  test("goes on: what fires is not told anew, an end that was held back is told, and nothing else is kept", () => {
    const state = parseState(stored);
    expect(Object.keys(state).sort()).toEqual(Object.keys(NO_ALERTS).sort());
    expect(state).toMatchObject({ clockMs: 60_000, dead: null, failed: { orders: { count: 1 } } });
    expect(state.notices).toMatchObject([{ id: "n", items: [{ kind: "firing" }] }]);
    const { during, told } = life({}, state);
    expect(during(2 * MINUTE, [FAILED])).toEqual([["resolved stock"]]);
    expect(during(3 * MINUTE, [])).toEqual([["resolved orders"]]);
    expect(told).toHaveLength(3);
  });
});
