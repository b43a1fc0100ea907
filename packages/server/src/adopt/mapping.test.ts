import fc from "fast-check";
import { expect, test } from "vitest";
import { sayIn } from "../language.ts";
import type { Catalog, ColumnKind } from "./catalog.ts";
import { clockOf } from "./clock.ts";
import { mapColumns, type Property } from "./mapping.ts";
import { proposedStates } from "./states.ts";

const say = sayIn("en");

const NAMES: readonly (readonly [Property, ColumnKind, readonly (readonly [name: string, comment?: string])[]])[] = [
  ["id", "integer", [["id"], ["pk_id"], ["event_id"], ["seq"], ["xh", "自增主键"]]],
  ["messageType", "text", [["event_type"], ["biz_type"], ["kind"], ["ywlx", "业务类型"], ["messageType"]]],
  ["messageKey", "text", [["biz_no"], ["idempotency_key"], ["business_id"], ["wybs", "业务唯一标识"], ["messageKey"]]],
  ["topic", "text", [["topic"], ["destination"], ["exchange"], ["zt1", "消息主题"], ["topicName"]]],
  ["messageBody", "text", [["payload"], ["content"], ["msg_body"], ["nr", "消息内容"], ["eventData"]]],
  ["state", "integer", [["status"], ["state"], ["send_status"], ["zt", "状态 0待发送"], ["msgStatus"]]],
  ["retryCount", "integer", [["retry_times"], ["attempts"], ["try_count"], ["cs", "重试次数"], ["retryCount"]]],
  [
    "nextRetryAt",
    "instant",
    [["next_retry_time"], ["next_attempt_at"], ["retry_at"], ["xcsj", "下次执行时间"], ["nextTry"]],
  ],
  ["failReason", "text", [["last_error"], ["error_message"], ["fail_msg"], ["yy", "失败原因"], ["errorInfo"]]],
  ["gmtCreate", "instant", [["created_at"], ["create_time"], ["gmt_create"], ["cjsj", "创建时间"], ["createdOn"]]],
  ["gmtModified", "instant", [["updated_at"], ["update_time"], ["modified"], ["xgsj", "修改时间"], ["updateTime"]]],
];

test("20 tables of renamed columns: nine of ten right, the rest asked, none wrong", () => {
  let right = 0;
  let asked = 0;
  const wrong: string[] = [];
  const names = fc.tuple(
    fc.constantFrom("", "f_", "msg_"),
    ...NAMES.map(([, , all]) => fc.constantFrom(...all, ...all, ...all, ["zz"] as const)),
  );
  for (const [prefix, ...chosen] of fc
    .sample(fc.tuple(names, fc.nat()), { numRuns: 20, seed: 20_261_124 })
    .map(([each]) => each)) {
    const columns = chosen.map(([name, comment = ""], place) => ({
      name: name === "zz" ? `${prefix}zz${place}` : `${prefix}${name}`,
      comment,
      kind: NAMES[place]?.[1] ?? "other",
      type: "",
      length: undefined,
      isNullable: true,
      hasDefault: false,
      fraction: 0,
    }));
    const of = (place: number): string => columns[place]?.name ?? "";
    const catalog: Catalog = {
      dialect: "mysql",
      schema: undefined,
      table: "t",
      columns,
      primaryKey: [of(0)],
      uniques: [[of(1), of(2)]],
      indexes: [],
    };
    const mapping = mapColumns(catalog);
    for (const [place, [property]] of NAMES.entries()) {
      const found = mapping.columns.get(property);
      if (found === of(place)) right += 1;
      else if (found === undefined && mapping.asked.some((each) => each.property === property)) asked += 1;
      else wrong.push(`${property}: ${found} for ${of(place)}`);
    }
  }
  expect(wrong).toEqual([]);
  // One name in sixteen is meaningless, and cannot be recognized.
  expect(right + asked).toBe(20 * NAMES.length);
  expect(right / (right + asked)).toBeGreaterThan(0.9);
});

test("what values mean is proposed from their words, or from the comment of numbers", () => {
  const values = (...all: readonly (string | number)[]) => all.map((value) => ({ value, count: 1 }));
  expect([...proposedStates(values(0, 2, 9), "0-待发送，1-发送中，2-已发送，3-发送失败")]).toEqual([
    [0, "pending"],
    [2, "sent"],
    [9, undefined],
  ]);
  expect([...proposedStates(values("NEW", "done", "失败", "xyz"), "")].map(([, state]) => state)).toEqual([
    ...["pending", "sent", "failed", undefined],
  ]);
});

test("the clock is told by rows that one of both clocks has not reached, and else asked", () => {
  const of = (newest: string | undefined, local: string, utc: string, type = "datetime") =>
    clockOf({ newest, local, utc }, { type, dialect: "mysql", say }).clock;
  const [local, utc] = ["2026-11-24 16:00:00", "2026-11-24 08:00:00"];
  expect(of("2026-11-24 15:59:30", local, utc)).toBe("server");
  expect(of("2026-11-24 07:59:30", local, utc), "fresh in UTC, or eight hours old").toBeUndefined();
  expect(of("2026-11-24 07:59:30", "2026-11-24 03:00:00", utc)).toBe("utc");
  expect(of("2026-11-24 01:00:00", utc, utc)).toBe("utc");
  expect(of(undefined, local, utc)).toBeUndefined();
  expect(of(undefined, local, utc, "timestamp with time zone")).toBe("utc");
  const plain = { type: "timestamp without time zone" };
  expect(
    clockOf({ newest: utc, local: utc, utc }, { ...plain, dialect: "postgres", say }).clock,
    "asked",
  ).toBeUndefined();
});
