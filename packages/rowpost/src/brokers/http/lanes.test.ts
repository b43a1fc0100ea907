import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import type { OutgoingMessage, PublishResult } from "../broker.ts";
import { createSlots, publishInLanes } from "./lanes.ts";

function message(id: string, orderingKey?: string): OutgoingMessage {
  const identity = { id, type: "t", key: id, topic: "orders", orderingKey };
  return { ...identity, body: "", contentType: "text/plain", headers: {}, deliverAtMs: undefined, attempt: 1 };
}

/** Sends end when the test says so. */
function manualSends() {
  const open = new Map<string, (result: PublishResult) => void>();
  const started: string[] = [];
  return {
    started,
    send: ({ id }: OutgoingMessage): Promise<PublishResult> => {
      started.push(id);
      return new Promise((resolve) => {
        open.set(id, resolve);
      });
    },
    async end(id: string, result: PublishResult = { status: "sent", messageId: id }): Promise<void> {
      open.get(id)?.(result);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    },
  };
}

const failed: PublishResult = { status: "failed", scope: "message", retriable: true, code: "X", reason: "x" };

describe("lanes", () => {
  test("no more than the slots run at once, over all calls, first come first served", async () => {
    const slots = createSlots(2);
    const sends = manualSends();
    const { signal } = new AbortController();
    const one = publishInLanes({ batch: [message("1"), message("2"), message("3")], signal, slots, send: sends.send });
    const two = publishInLanes({ batch: [message("4")], signal, slots, send: sends.send });
    expect(sends.started).toEqual(["1", "2"]);
    await sends.end("2");
    expect(sends.started).toEqual(["1", "2", "3"]);
    await sends.end("1");
    await sends.end("4");
    await two;
    await sends.end("3");
    expect((await one).map((result) => result.status === "sent" && result.messageId)).toEqual(["1", "2", "3"]);
  });

  test("a key's messages wait for each other; the others do not", async () => {
    const sends = manualSends();
    const batch = [message("a1", "a"), message("a2", "a"), message("b1", "b"), message("free")];
    const call = publishInLanes({
      batch,
      signal: new AbortController().signal,
      slots: createSlots(10),
      send: sends.send,
    });
    expect(sends.started).toEqual(["a1", "b1", "free"]);
    await sends.end("a1");
    expect(sends.started).toEqual(["a1", "b1", "free", "a2"]);
    for (const id of ["a2", "b1", "free"]) await sends.end(id);
    expect((await call).map(({ status }) => status)).toEqual(["sent", "sent", "sent", "sent"]);
  });

  test("a failure stops the rest of its key", async () => {
    const sends = manualSends();
    const batch = [message("a1", "a"), message("b1", "b"), message("a2", "a"), message("a3", "a"), message("b2", "b")];
    const call = publishInLanes({
      batch,
      signal: new AbortController().signal,
      slots: createSlots(10),
      send: sends.send,
    });
    await sends.end("a1", failed);
    for (const id of ["b1", "b2"]) await sends.end(id);
    expect((await call).map(({ status }) => status)).toEqual(["failed", "sent", "notStarted", "notStarted", "sent"]);
    expect(sends.started).not.toContain("a2");
  });

  test("an abort ends what waits at once, waits for what runs, and frees the way for other calls", async () => {
    const slots = createSlots(1);
    const sends = manualSends();
    const deadline = new AbortController();
    const aborted = publishInLanes({
      batch: [message("1", "a"), message("2"), message("3", "a")],
      signal: deadline.signal,
      slots,
      send: sends.send,
    });
    const other = publishInLanes({
      batch: [message("4")],
      signal: new AbortController().signal,
      slots,
      send: sends.send,
    });
    const waiting = publishInLanes({ batch: [message("5")], signal: deadline.signal, slots, send: sends.send });
    deadline.abort();
    expect((await waiting).map(({ status }) => status)).toEqual(["notStarted"]);
    await sends.end("1");
    expect((await aborted).map(({ status }) => status)).toEqual(["sent", "notStarted", "notStarted"]);
    await sends.end("4");
    await other;
    expect(sends.started).toEqual(["1", "4"]);
    expect(getEventListeners(deadline.signal, "abort")).toHaveLength(0);
  });

  test("an aborted signal and an empty batch start nothing; an ended call leaves no listener", async () => {
    const sends = manualSends();
    const slots = createSlots(1);
    const stop = new AbortController();
    expect(await publishInLanes({ batch: [], signal: stop.signal, slots, send: sends.send })).toEqual([]);
    const call = publishInLanes({ batch: [message("1")], signal: stop.signal, slots, send: sends.send });
    await sends.end("1");
    await call;
    expect(getEventListeners(stop.signal, "abort")).toHaveLength(0);
    stop.abort();
    const [result] = await publishInLanes({ batch: [message("2")], signal: stop.signal, slots, send: sends.send });
    expect(result?.status).toBe("notStarted");
    expect(sends.started).toEqual(["1"]);
  });
});
