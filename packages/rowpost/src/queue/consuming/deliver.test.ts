import { describe, expect, test } from "vitest";
import { awayBy } from "../../runtime/away.ts";
import { systemClock } from "../../runtime/clock.ts";
import { silentLogger } from "../../runtime/logger.ts";
import { deliver } from "./deliver.ts";
import { deliveryOf } from "./delivery.ts";
import type { ConsumerSettings } from "./options.ts";

const MESSAGE = {
  id: "64",
  partition: 0,
  key: "4711",
  type: null,
  body: "1",
  contentType: null,
  headers: null,
  orderingKey: null,
  dueInMs: 0,
};

function outcomeOf(handler: () => unknown) {
  const settings = {
    topic: "orders",
    group: "g",
    handler,
    maxAttempts: 1,
    clock: systemClock,
    isUnavailable: awayBy(silentLogger),
  };
  const context = { tx: undefined, signal: new AbortController().signal };
  return deliver(settings as unknown as ConsumerSettings, deliveryOf(MESSAGE), context);
}

function withThen(target: object, then: unknown): object {
  const name = ["th", "en"].join("");
  return Object.assign(target, { [name]: then });
}

describe("a handler", () => {
  test("that returns no promise has ended", () => {
    expect(outcomeOf(() => undefined)).toMatchObject({ kind: "consumed" });
    expect(outcomeOf(() => withThen({}, 1))).toMatchObject({ kind: "consumed" });
  });

  test("is waited for, whatever its answer is that has a then", async () => {
    const late = Promise.reject(new Error("no stock"));
    const callable = withThen(() => undefined, late.then.bind(late));
    const proxy = new Proxy({}, { get: (_, name) => (name === "then" ? late.then.bind(late) : undefined) });
    for (const answer of [late, callable, proxy]) {
      const outcome = outcomeOf(() => answer);
      expect(outcome).toBeInstanceOf(Promise);
      expect(await outcome).toMatchObject({ kind: "failed", error: "no stock", final: true });
    }
  });

  test("may throw anything", () => {
    for (const thrown of [
      Object.create(null),
      { code: Object.create(null) },
      Object.assign(new Error("x"), { message: Symbol("x") }),
      undefined,
    ]) {
      const outcome = outcomeOf(() => {
        throw thrown;
      });
      expect(outcome).toMatchObject({ kind: "failed", final: true });
    }
  });
});
