import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../runtime/errors.ts";
import {
  companionTables,
  createLayout,
  defaultLayout,
  hasClaimToken,
  messageTableLayout,
  SHIPPED_LAYOUTS,
  tableKey,
  tLocalMessageLayout,
} from "./layouts.ts";

describe("createLayout", () => {
  test("another table keeps the base's name and has companions of its own", () => {
    const layout = createLayout({ table: "orders_outbox", schema: "shop" });
    expect(layout.name).toBe("default");
    expect(tableKey(layout)).toBe("shop.orders_outbox");
    expect(companionTables(layout)).toEqual({
      shard: "orders_outbox_shard",
      relay: "orders_outbox_relay",
      suspension: "orders_outbox_suspension",
      audit: "orders_outbox_audit",
      confirmation: "orders_outbox_confirmation",
      unmatched: "orders_outbox_unmatched",
      session: "orders_outbox_session",
      alert: "orders_outbox_alert",
      silence: "orders_outbox_silence",
      migration: "orders_outbox_migration",
      archive: "orders_outbox_archive",
    });
  });

  test("tables that share a companion prefix still have an archive each", () => {
    const [one, two] = [
      createLayout({ table: "one", companion: "shared" }),
      createLayout({ table: "two", companion: "shared" }),
    ];
    expect(companionTables(one).shard).toBe(companionTables(two).shard);
    expect(companionTables(one).archive).not.toBe(companionTables(two).archive);
  });

  test("other columns or states make it the user's own, which no migration creates", () => {
    expect(createLayout({ columns: { headers: undefined } }).name).toBe("custom");
    expect(createLayout({ base: messageTableLayout, states: { pending: "待发送" } }).name).toBe("custom");
    expect(createLayout({ base: tLocalMessageLayout, table: "t2" }).name).toBe("t_local_message");
  });

  test("a lowered limit keeps the others", () => {
    expect(createLayout({ limits: { key: 40 } }).limits).toEqual({ ...defaultLayout.limits, key: 40 });
  });

  for (const [what, options] of [
    ["a quote in a name", { table: "a`b" }],
    ["a dot in a name", { table: "shop.messages" }],
    ["a name that PostgreSQL would cut", { table: "x".repeat(56) }],
    ["an empty column", { columns: { topic: "" } }],
    ["two states that differ by case only", { base: messageTableLayout, states: { pending: "Sent" } }],
    ["numbers and words mixed", { states: { sent: "sent" } }],
    ["a broken number", { states: { sent: 2.5 } }],
    ["a backslash in a word", { base: messageTableLayout, states: { pending: "a\\b" } }],
  ] as const) {
    test(`${what} is refused`, () => {
      expect(() => createLayout(options)).toThrow(ConfigurationError);
    });
  }
});

test("each shipped layout is found under its own name, and says what tells its claims apart", () => {
  for (const [name, layout] of Object.entries(SHIPPED_LAYOUTS)) expect(layout.name).toBe(name);
  expect(hasClaimToken(defaultLayout)).toBe(true);
  expect(hasClaimToken(tLocalMessageLayout)).toBe(false);
  // delivery_count can decrease (rule: claim-token).
  expect(hasClaimToken(createLayout({ columns: { lockVersion: undefined } }))).toBe(false);
});
