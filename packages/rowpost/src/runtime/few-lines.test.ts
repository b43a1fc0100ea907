import { expect, it } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { fewLines } from "./few-lines.ts";
import type { LogFields } from "./logger.ts";

function setUp() {
  const clock = createManualClock();
  const lines: (readonly [string, LogFields | undefined])[] = [];
  const add = (message: string, fields?: LogFields) => void lines.push([message, fields]);
  return { clock, lines, logger: fewLines({ debug: add, info: add, warn: add, error: add }, clock) };
}

it("of 20,000 messages that fail for one cause the first few are lines, then a count", async () => {
  const { clock, lines, logger } = setUp();
  for (let id = 1; id <= 20_000; id += 1)
    logger.error("a message failed", { id, topic: "orders", reason: `HTTP_422: order ${id} is unknown` });
  expect(lines).toHaveLength(5);
  await clock.advance(60_000);
  const last = { id: 20_000, topic: "orders", reason: "HTTP_422: order 20000 is unknown" };
  expect(lines.slice(5)).toEqual([["a message failed", { ...last, more: 19_995, withinMs: 60_000 }]]);
  expect(clock.pendingTimers()).toBe(0);
  logger.error("a message failed", { id: 1, topic: "orders", reason: "HTTP_422: order 1 is unknown" });
  expect(lines).toHaveLength(7);
});

it("topics, causes and sentences are counted apart, and nothing is said of those that are few", async () => {
  const { clock, lines, logger } = setUp();
  for (let turn = 0; turn < 5; turn += 1) {
    logger.error("a message failed", { topic: "orders", reason: "HTTP_422: no" });
    logger.error("a message failed", { topic: "orders", reason: "HTTP_400: bad" });
    logger.error("a message failed", { topic: "payments", reason: "HTTP_422: no" });
    logger.warn("a message was not handled and is tried again", { type: "order.paid", error: new Error("no stock") });
    logger.info("a relay started");
  }
  await clock.advance(60_000);
  expect(lines).toHaveLength(25);
});
