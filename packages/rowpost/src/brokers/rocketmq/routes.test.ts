import { describe, expect, test } from "vitest";
import { failureOfStatus } from "./failures.ts";
import { createRoutes, type RouteAnswer, type Routes } from "./routes.ts";

const NORMAL: RouteAnswer = { route: { accepts: new Set(["NORMAL"]) } };
const FIFO: RouteAnswer = { route: { accepts: new Set(["FIFO"]) } };

function failed(code: string, message = ""): RouteAnswer & { failure: object } {
  const failure = failureOfStatus({ code, message });
  if (failure === undefined) throw new Error(`${code} is no failure`);
  return { failure };
}

interface Setup {
  readonly routes: Routes;
  readonly asked: string[];
  answer: RouteAnswer;
  now: number;
}

function setup(answer: RouteAnswer): Setup {
  const asked: string[] = [];
  const state: Setup = {
    asked,
    answer,
    now: 0,
    routes: createRoutes({
      query: async (topic) => {
        asked.push(topic);
        return state.answer;
      },
      now: () => state.now,
    }),
  };
  return state;
}

describe("createRoutes", () => {
  test("asks once for all who wait, then answers at once", async () => {
    const s = setup(NORMAL);
    await Promise.all([s.routes.find("t"), s.routes.find("t")]);
    expect(s.routes.find("t")).toBe(NORMAL);
    expect(s.asked).toEqual(["t"]);
  });

  test("a question that went wrong is asked again", async () => {
    let asked = 0;
    const routes = createRoutes({
      async query() {
        asked += 1;
        if (asked === 1) throw new Error("no such luck");
        return NORMAL;
      },
      now: () => 0,
    });
    await expect(routes.find("t")).rejects.toThrow("no such luck");
    expect(await routes.find("t")).toBe(NORMAL);
  });

  test("after 30 s the old route is used once more while it is asked for again", async () => {
    const s = setup(NORMAL);
    await s.routes.find("t");
    s.now = 29_999;
    s.answer = FIFO;
    expect(s.routes.find("t")).toBe(NORMAL);
    expect(s.asked.length).toBe(1);
    s.now = 30_000;
    expect(s.routes.find("t")).toBe(NORMAL);
    expect(s.asked.length).toBe(2);
    await Promise.resolve();
    await Promise.resolve();
    expect(s.routes.find("t")).toBe(FIFO);
  });

  test("a missing topic is asked for again after a second, not at every publish", async () => {
    const s = setup(failed("TOPIC_NOT_FOUND"));
    expect(await s.routes.find("t")).toMatchObject({ failure: { scope: "message", retriable: true } });
    for (s.now = 0; s.now < 1000; s.now += 100) await s.routes.find("t");
    expect(s.asked.length).toBe(1);
    s.answer = NORMAL;
    expect(await s.routes.find("t")).toBe(NORMAL);
  });

  test("an answer that says nothing about the topic is not kept", async () => {
    const s = setup(failed("TOO_MANY_REQUESTS"));
    expect(await s.routes.find("t")).toMatchObject({ failure: { scope: "destination" } });
    s.answer = NORMAL;
    expect(await s.routes.find("t")).toBe(NORMAL);
    s.now = 30_000;
    s.answer = failed("TOO_MANY_REQUESTS");
    await s.routes.find("t");
    await Promise.resolve();
    expect(s.routes.find("t")).toBe(NORMAL);
  });

  test("a contradicted route is asked for before its next use", async () => {
    const s = setup(NORMAL);
    await s.routes.find("t");
    const { failure } = failed(
      "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE",
      "expected type is FIFO, but actual type is NORMAL",
    );
    expect(s.routes.contradicted("t", failure)).toMatchObject({ scope: "message", retriable: true });
    s.answer = FIFO;
    expect(await s.routes.find("t")).toBe(FIFO);
  });

  test("a topic that was there and is missing is tried on its last route for a minute, then counts as deleted", async () => {
    const s = setup(NORMAL);
    await s.routes.find("t");
    s.routes.expireAll();
    s.answer = failed("TOPIC_NOT_FOUND");
    for (s.now = 0; s.now < 60_000; s.now += 500) expect(await s.routes.find("t")).toBe(NORMAL);
    expect(s.asked.length, "once a second").toBeLessThanOrEqual(61);
    s.now = 61_001;
    await s.routes.find("t");
    await Promise.resolve();
    expect(await s.routes.find("t")).toMatchObject({ failure: { scope: "message" } });
    s.now = 63_000;
    s.answer = NORMAL;
    expect(await s.routes.find("t")).toBe(NORMAL);
  });

  test("a topic that SendMessage says is missing is left alone for a second, then tried again; for a minute it counts as away", async () => {
    const s = setup(NORMAL);
    await s.routes.find("t");
    const { failure } = failed(
      "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE",
      "expected type is UNSPECIFIED, but actual type is NORMAL",
    );
    s.answer = failed("TOPIC_NOT_FOUND");
    for (s.now = 0; s.now < 60_000; s.now += 1000) {
      expect(s.routes.contradicted("t", failure)).toMatchObject({ scope: "destination", retryAfterMs: 1000 });
      s.now += 999;
      expect(s.routes.find("t")).toMatchObject({ failure: { scope: "destination" } });
      s.now += 1;
      expect(await s.routes.find("t")).toBe(NORMAL);
    }
    s.now = 61_000;
    expect(s.routes.contradicted("t", failure)).toMatchObject({ scope: "message" });
  });

  test("a route that SendMessage has proven wrong does not come back while the proxy calls the topic missing", async () => {
    const s = setup(NORMAL);
    await s.routes.find("t");
    const { failure } = failed(
      "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE",
      "expected type is FIFO, but actual type is NORMAL",
    );
    s.routes.contradicted("t", failure);
    s.answer = failed("TOPIC_NOT_FOUND");
    for (s.now = 0; s.now < 20_000; s.now += 500) {
      expect(await s.routes.find("t")).toMatchObject({ failure: { scope: "destination", retryAfterMs: 1000 } });
    }
    expect(s.asked.length).toBeLessThanOrEqual(22);
    s.answer = FIFO;
    expect(await s.routes.find("t")).toBe(FIFO);
  });

  test("made-up topics do not fill the memory", async () => {
    const s = setup(failed("TOPIC_NOT_FOUND"));
    for (let index = 0; index < 5000; index += 1) await s.routes.find(`t${index}`);
    expect(s.asked.length).toBe(5000);
    await s.routes.find("t0");
    await s.routes.find("t4999");
    expect(s.asked.length).toBe(5001);
  });
});
