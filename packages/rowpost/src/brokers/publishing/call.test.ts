import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { outgoing } from "../../../test/brokers/messages.ts";
import type { FailureScope, OutgoingMessage, PublishResult } from "../broker.ts";
import { createAbortScope } from "./abort-scope.ts";
import { AGAIN, type Call, createCall, type Handed, type Load, type LoadFailure } from "./call.ts";
import { failed } from "./failures.ts";
import { type PlacedMessage, startLanes } from "./lanes.ts";
import { createWindow, type Window } from "./window.ts";

function createServer({ loads, leaves = true }: { loads?: number; leaves?: boolean } = {}) {
  const window = createWindow({ loads, bytes: 1_000_000 });
  const handed: string[] = [];
  const answer = new Map<string, (outcome: Parameters<Call<PlacedMessage>["settle"]>[1]) => void>();
  const server = {
    window,
    handed,
    atTurn: (_key: string, _retry: () => void): Handed => undefined,
    publish(
      batch: readonly OutgoingMessage[],
      scope = createAbortScope(),
      begin?: (call: Call<PlacedMessage>) => void,
    ) {
      const call = createCall<PlacedMessage>({
        count: batch.length,
        scope,
        window,
        carrier: (own) => ({
          hand(load, retry) {
            const name = keysOf(load);
            const said = server.atTurn(name, retry);
            if (said === AGAIN) return said;
            handed.push(name);
            answer.set(name, (outcome) => own.settle(load, outcome));
            return said;
          },
          ...(leaves && { leave: (_load, ending) => failed("unknown", ending.toUpperCase(), "left") }),
        }),
      });
      if (begin !== undefined) begin(call);
      else startLanes(call, batch, { destinationOf: ({ topic }) => topic, bytesOf: () => 1 });
      return call.done;
    },
    sent: (...keys: string[]) => {
      for (const key of keys) answer.get(key)?.(key.split("+").map((each) => `receipt of ${each}`));
    },
    fails: (key: string, scope: FailureScope, more: Partial<LoadFailure> = {}) =>
      answer.get(key)?.({ ...failed(scope, "NO", "no"), ...more }),
    again: (key: string) => answer.get(key)?.(AGAIN),
  };
  return server;
}

const keysOf = ({ items }: Load<PlacedMessage>): string => items.map(({ message }) => message.key).join("+");
const one = (key: string, orderingKey?: string, topic = "orders"): OutgoingMessage =>
  outgoing(key, { orderingKey, topic });
const placed = (batch: readonly OutgoingMessage[]): PlacedMessage[] =>
  batch.map((message, index) => ({ index, orderingKey: message.orderingKey, message }));
function loadOf(items: readonly PlacedMessage[], next?: Load<PlacedMessage>): Load<PlacedMessage> {
  return { destination: "orders", items, bytes: 1, next };
}
const said = async (results: Promise<PublishResult[]>): Promise<string[]> =>
  (await results).map((each) =>
    each.status === "sent" ? "sent" : each.status === "failed" ? `${each.scope} ${each.code}` : "notStarted",
  );

describe("lanes", () => {
  test("a key's messages wait for each other, the others do not; results stand in the order of the batch", async () => {
    const server = createServer();
    const publishing = server.publish([one("a1", "a"), one("a2", "a"), one("b1", "b"), one("free")]);
    expect(server.handed).toEqual(["a1", "b1", "free"]);
    server.sent("a1");
    expect(server.handed).toEqual(["a1", "b1", "free", "a2"]);
    server.sent("free", "a2", "b1");
    expect((await publishing).map((each) => each.status === "sent" && each.messageId)).toEqual([
      "receipt of a1",
      "receipt of a2",
      "receipt of b1",
      "receipt of free",
    ]);
  });

  test("a key goes on at another topic when its turn comes", async () => {
    const server = createServer();
    const publishing = server.publish([one("1", "a", "x"), one("2", "a", "y"), one("3", "a", "x")]);
    for (const key of ["1", "2", "3"]) {
      expect(server.handed.at(-1)).toBe(key);
      server.sent(key);
    }
    expect(await said(publishing)).toEqual(["sent", "sent", "sent"]);
  });

  test.each(["message", "destination", "connection", "unknown"] as const)(
    "behind a failure of scope %s nothing of its key is handed over",
    async (scope) => {
      const server = createServer();
      const publishing = server.publish([one("a1", "a"), one("b1", "b"), one("a2", "a"), one("a3", "a")]);
      server.sent("b1");
      server.fails("a1", scope);
      expect(await said(publishing)).toEqual([`${scope} NO`, "sent", "notStarted", "notStarted"]);
      expect(server.handed).toEqual(["a1", "b1"]);
    },
  );

  test("what went in one load with an unknown one is unknown, and of any other failure not started", async () => {
    for (const [scope, behind] of [
      ["unknown", "unknown NO"],
      ["destination", "notStarted"],
    ] as const) {
      const server = createServer();
      const batch = [one("a1", "a"), one("a2", "a"), one("a3", "a")];
      const [first, second, third] = placed(batch) as [PlacedMessage, PlacedMessage, PlacedMessage];
      const publishing = server.publish(batch, undefined, (call) =>
        call.start(loadOf([first, second], loadOf([third]))),
      );
      server.fails("a1+a2", scope);
      expect(await said(publishing)).toEqual([`${scope} NO`, behind, "notStarted"]);
    }
  });

  test("a message that is refused holds back what is behind it, and is not started behind one that fails", async () => {
    const server = createServer();
    const batch = [one("a1", "a"), one("bad", "a"), one("a3", "a"), one("b1", "b")];
    const places = placed(batch) as [PlacedMessage, PlacedMessage, PlacedMessage, PlacedMessage];
    const [a1, bad, a3, b1] = places;
    const refuse = (call: Call<PlacedMessage>): void => {
      call.refuse(bad, "orders", failed("message", "BAD", "bad", { retriable: false }));
      call.start(loadOf([a1, b1], loadOf([a3])));
    };
    const good = server.publish(batch, undefined, refuse);
    server.sent("a1+b1");
    expect(await said(good)).toEqual(["sent", "message BAD", "notStarted", "sent"]);
    const broken = server.publish(batch, undefined, refuse);
    server.fails("a1+b1", "unknown");
    expect(await said(broken)).toEqual(["unknown NO", "notStarted", "notStarted", "unknown NO"]);
  });
});

describe("what a failure is true of", () => {
  test("a destination that is away takes nothing more in this call; others do", async () => {
    const server = createServer({ loads: 1 });
    const publishing = server.publish([one("1"), one("2"), one("3", undefined, "billing")]);
    server.fails("1", "destination", { retryAfterMs: 500 });
    server.sent("3");
    expect(await publishing).toMatchObject([
      { retryAfterMs: 500 },
      { code: "NO", retryAfterMs: 500 },
      { status: "sent" },
    ]);
    expect(server.handed).toEqual(["1", "3"]);
  });

  test("without a connection nothing more is tried, and what is under way is waited for", async () => {
    const server = createServer({ loads: 2 });
    const publishing = server.publish([one("1"), one("2"), one("3"), one("4", "k"), one("5", "k")]);
    server.fails("1", "connection");
    server.sent("2");
    expect(await said(publishing)).toEqual(["connection NO", "sent", "connection NO", "connection NO", "notStarted"]);
    expect(server.handed).toEqual(["1", "2"]);
  });

  test("what is only the adapter's is not told to the relay", async () => {
    const server = createServer();
    const publishing = server.publish([one("1")]);
    server.fails("1", "message", { divisible: true });
    expect((await publishing)[0]).toEqual(failed("message", "NO", "no"));
  });
});

describe("a load that is divided", () => {
  test("goes in halves until the culprit stands alone, and behind it nothing of its key", async () => {
    const server = createServer();
    const batch = [one("1", "a"), one("BAD", "a"), one("3", "a"), one("4", "b")];
    const publishing = server.publish(batch, undefined, (call) => call.start(loadOf(placed(batch))));
    server.fails("1+BAD+3+4", "message", { divisible: true });
    server.fails("1+BAD", "message", { divisible: true });
    server.sent("1");
    server.fails("BAD", "message", { divisible: true });
    server.sent("4");
    expect(await said(publishing)).toEqual(["sent", "message NO", "notStarted", "sent"]);
    expect(server.handed).toEqual(["1+BAD+3+4", "1+BAD", "1", "BAD", "4"]);
  });

  test("is not failed for one of its messages when the call ends meanwhile", async () => {
    const server = createServer({ leaves: false });
    const deadline = new AbortController();
    const batch = [one("1"), one("2")];
    const scope = createAbortScope({ deadline: deadline.signal });
    const publishing = server.publish(batch, scope, (call) => call.start(loadOf(placed(batch))));
    deadline.abort();
    server.fails("1+2", "message", { divisible: true, retriable: false });
    expect(await said(publishing)).toEqual(["notStarted", "notStarted"]);
  });
});

describe("the end of a call", () => {
  test("what is under way is as the adapter says, the rest not started; room goes to other calls", async () => {
    const server = createServer({ loads: 2 });
    const deadline = new AbortController();
    const scope = createAbortScope({ deadline: deadline.signal });
    const publishing = server.publish([one("1"), one("2", "a"), one("3", "a"), one("4")], scope);
    const waiting = server.publish([one("other")]);
    expect(server.handed).toEqual(["1", "2"]);
    deadline.abort();
    expect(await said(publishing)).toEqual(["unknown DEADLINE", "unknown DEADLINE", "notStarted", "notStarted"]);
    expect(server.handed).toEqual(["1", "2", "other"]);
    server.sent("1", "other");
    expect(await said(waiting)).toEqual(["sent"]);
    scope.end();
    expect(getEventListeners(deadline.signal, "abort")).toHaveLength(0);
  });

  test("an adapter that knows better settles by itself what is under way", async () => {
    const server = createServer({ loads: 2, leaves: false });
    const deadline = new AbortController();
    const publishing = server.publish([one("1"), one("2"), one("3")], createAbortScope({ deadline: deadline.signal }));
    deadline.abort();
    server.sent("1");
    server.fails("2", "connection");
    expect(await said(publishing)).toEqual(["sent", "connection NO", "notStarted"]);
  });

  test("closed before it went out is not started", async () => {
    const server = createServer({ leaves: false });
    const closing = new AbortController();
    const publishing = server.publish([one("1"), one("2")], createAbortScope({ closing: closing.signal }));
    closing.abort();
    server.fails("1", "connection");
    server.fails("2", "unknown");
    expect(await said(publishing)).toEqual(["notStarted", "unknown NO"]);
  });

  test("a call that waits hands nothing over in the room of one that the same signal ended", async () => {
    const server = createServer({ loads: 1 });
    const deadline = new AbortController();
    const scopes = [1, 2].map(() => createAbortScope({ deadline: deadline.signal }));
    const calls = scopes.map((scope, index) => server.publish([one(`${index}`)], scope));
    deadline.abort();
    expect(await Promise.all(calls.map(said))).toEqual([["unknown DEADLINE"], ["notStarted"]]);
    expect(server.handed).toEqual(["0"]);
  });

  test("an outcome that comes late, or twice, changes nothing", async () => {
    const server = createServer({ loads: 1 });
    const publishing = server.publish([one("1"), one("2"), one("3")]);
    server.sent("1", "1");
    expect(server.handed).toEqual(["1", "2"]);
    server.sent("2", "3");
    expect(await said(publishing)).toEqual(["sent", "sent", "sent"]);
  });
});

describe("a load that cannot go yet", () => {
  test("is offered again when the adapter says so, and takes no room meanwhile", async () => {
    const server = createServer({ loads: 1 });
    let retry = (): void => undefined;
    server.atTurn = (_key, whenReady) => {
      retry = whenReady;
      return AGAIN;
    };
    const waiting = server.publish([one("1")]);
    expect(server.handed).toEqual([]);
    server.atTurn = () => undefined;
    const other = server.publish([one("2")]);
    expect(server.handed).toEqual(["2"]);
    // No room yet: it waits for that as well.
    retry();
    expect(server.handed).toEqual(["2"]);
    server.sent("2");
    server.sent("1");
    expect(await Promise.all([waiting, other].map(said))).toEqual([["sent"], ["sent"]]);
  });

  test("or after it was handed over in vain", async () => {
    const server = createServer();
    const publishing = server.publish([one("1", "a"), one("2", "a")]);
    server.again("1");
    expect(server.handed).toEqual(["1", "1"]);
    server.sent("1", "2");
    expect(await said(publishing)).toEqual(["sent", "sent"]);
  });
});

test("a fault of the adapter is unknown for its load, and for no other", async () => {
  const server = createServer();
  server.atTurn = (key) => {
    if (key === "bad") throw new TypeError("no such thing");
  };
  const publishing = server.publish([one("1"), one("bad"), one("3")]);
  server.sent("1", "3");
  expect(await publishing).toMatchObject([
    { status: "sent" },
    { scope: "unknown", code: "PUBLISH_FAULT" },
    { status: "sent" },
  ]);
});

test("no more loads than there is room for, first come first served over all calls", async () => {
  const server = createServer({ loads: 2 });
  const window: Window = server.window;
  const [first, second] = [server.publish([one("1"), one("2"), one("3")]), server.publish([one("4")])];
  expect(server.handed).toEqual(["1", "2"]);
  server.sent("2");
  expect(server.handed).toEqual(["1", "2", "3"]);
  server.sent("1", "4", "3");
  await Promise.all([first, second]);
  expect(window.take("orders", 1)).toBe(true);
});

test("a batch of many that have their outcomes at once needs no depth", async () => {
  const server = createServer();
  server.atTurn = () => failed("message", "NO", "no");
  const batch = Array.from({ length: 20_000 }, (_, index) => one(String(index), index % 2 === 0 ? "a" : undefined));
  const results = await server.publish(batch);
  expect(results.filter(({ status }) => status === "failed")).toHaveLength(10_001);
});
