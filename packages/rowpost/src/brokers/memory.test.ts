import { describe, expect, test } from "vitest";
import { outgoing } from "../../test/brokers/messages.ts";
import { DeadlineError } from "../runtime/deadline.ts";
import { ConfigurationError } from "../runtime/errors.ts";
import type { PublishFailed, PublishResult } from "./broker.ts";
import { memory } from "./memory.ts";

const { signal } = new AbortController();
const away: PublishFailed = {
  status: "failed",
  scope: "connection",
  retriable: true,
  code: "AWAY",
  reason: "injected",
};

describe("memory broker", () => {
  test("keeps what was published, in order, with receipts that count", async () => {
    const broker = memory();
    const results = await broker.publish([outgoing("1"), outgoing("2", { topic: "billing" })], { signal });
    expect(results).toEqual([
      { status: "sent", messageId: "1" },
      { status: "sent", messageId: "2" },
    ]);
    expect(broker.published().map(({ key, messageId }) => [key, messageId])).toEqual([
      ["1", "1"],
      ["2", "2"],
    ]);
    expect(broker.published("billing").map(({ key }) => key)).toEqual(["2"]);
  });

  test("forgets the oldest beyond its bound, and counts on", async () => {
    const broker = memory({ maxMessages: 3 });
    for (let index = 0; index < 20; index += 1) await broker.publish([outgoing(String(index))], { signal });
    expect(broker.published().map(({ key }) => key)).toEqual(["17", "18", "19"]);
    expect(await broker.waitFor(20)).toHaveLength(3);
    expect(() => memory({ maxMessages: 0 })).toThrow(ConfigurationError);
  });

  test("waitFor resolves when the messages are there, also those that came before, and gives up in words", async () => {
    const broker = memory();
    await broker.publish([outgoing("1")], { signal });
    const waiting = broker.waitFor(3);
    await broker.publish([outgoing("2"), outgoing("3")], { signal });
    expect((await waiting).map(({ key }) => key)).toEqual(["1", "2", "3"]);
    const inVain = broker.waitFor(4, { withinMs: 5 });
    await expect(inVain).rejects.toBeInstanceOf(DeadlineError);
    await expect(inVain).rejects.toThrow("4 published messages (there are 3)");
    broker.clear();
    expect(broker.published()).toEqual([]);
    await expect(broker.waitFor(1, { withinMs: 5 })).rejects.toBeInstanceOf(DeadlineError);
  });

  test("injects outcomes by message; a key stops at its failure", async () => {
    const broker = memory({
      outcome: ({ key }): PublishResult | undefined =>
        key === "bad" ? away : key === "lie" ? { status: "sent", messageId: "lie" } : undefined,
    });
    const batch = [
      outgoing("good", { orderingKey: "a" }),
      outgoing("bad", { orderingKey: "a" }),
      outgoing("behind", { orderingKey: "a" }),
      outgoing("lie"),
      outgoing("other", { orderingKey: "b" }),
    ];
    const results = await broker.publish(batch, { signal });
    expect(results.map(({ status }) => status)).toEqual(["sent", "failed", "notStarted", "sent", "sent"]);
    expect(results[1]).toEqual(away);
    expect(
      broker
        .published()
        .map(({ key }) => key)
        .sort(),
    ).toEqual(["good", "other"]);
  });

  test("a slow outcome is unknown at the deadline, and what waits behind it is not started", async () => {
    const deadline = new AbortController();
    const broker = memory({ outcome: ({ key }) => (key === "slow" ? new Promise(() => undefined) : undefined) });
    const batch = [outgoing("slow", { orderingKey: "a" }), outgoing("behind", { orderingKey: "a" }), outgoing("free")];
    const publishing = broker.publish(batch, deadline);
    await broker.waitFor(1);
    deadline.abort();
    const results = await publishing;
    expect(results).toMatchObject([{ scope: "unknown" }, { status: "notStarted" }, { status: "sent" }]);
  });

  test("knows its topics, when it is told them", async () => {
    const broker = memory({ topics: ["orders"] });
    const results = await broker.publish([outgoing("1"), outgoing("2", { topic: "typo" })], { signal });
    expect(results).toMatchObject([{ status: "sent" }, { scope: "message", retriable: true, code: "TOPIC_NOT_FOUND" }]);
  });
});
