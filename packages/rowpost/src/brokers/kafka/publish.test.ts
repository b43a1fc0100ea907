/**
 * Results of a publish call for the outcomes of a driver. The driver is in memory and stores whole
 * batches or nothing, as Kafka does.
 */
import { describe, expect, test } from "vitest";
import type { OutgoingMessage, PublishResult } from "../broker.ts";
import { createAbortScope } from "../publishing/abort-scope.ts";
import { createWindow } from "../publishing/window.ts";
import { type BatchOutcome, type Driver, FaultError, type PartitionBatch } from "./driver.ts";
import type { Fault } from "./failures.ts";
import { publishBatch } from "./publish.ts";
import { createSessions, isFailure } from "./sessions.ts";
import { createTopics } from "./topics.ts";

const TOO_LARGE: Fault = { kind: "answer", code: 10, name: "MESSAGE_TOO_LARGE", text: "too large" };
const MOVED: Fault = { kind: "answer", code: 6, name: "NOT_LEADER_OR_FOLLOWER", text: "moved" };
const LOST: Fault = { kind: "lost", code: "ECONNRESET", text: "reset" };
const REFUSED: Fault = { kind: "unreachable", code: "ECONNREFUSED", text: "refused" };

interface Bench {
  fault: (batch: PartitionBatch) => Fault | undefined;
  away: Fault | undefined;
  readonly leaders: number;
  partitions: number;
  readonly stored: string[];
  readonly sends: PartitionBatch[][];
  opened: number;
  closed: number;
  describes: number;
  publish(batch: readonly OutgoingMessage[], signal?: AbortSignal): Promise<PublishResult[]>;
}

function createBench({ leaders = 1, partitions = 1 } = {}): Bench {
  const offsets = new Map<number, bigint>();
  const driver: Driver = {
    endsAttempts: true,
    async open() {
      if (bench.away !== undefined) throw new FaultError(bench.away);
      bench.opened += 1;
      return {
        check: async () => undefined,
        async describe() {
          bench.describes += 1;
          return { leaders: Array.from({ length: bench.partitions }, (_, partition) => partition % bench.leaders) };
        },
        send: async (_leader, _topic, batches) => {
          bench.sends.push([...batches]);
          return batches.map((batch) => store(batch));
        },
        close: async () => {
          bench.closed += 1;
        },
      };
    },
  };
  function store(batch: PartitionBatch): BatchOutcome {
    const fault = bench.fault(batch);
    if (fault !== undefined) return { fault };
    const baseOffset = offsets.get(batch.partition) ?? 0n;
    offsets.set(batch.partition, baseOffset + BigInt(batch.records.length));
    bench.stored.push(...batch.records.map(({ value }) => String(value)));
    return { baseOffset };
  }
  const sessions = createSessions({ load: async () => driver, connectTimeoutMs: 1000, requestTimeoutMs: 1000 });
  const topics = createTopics({
    now: () => 0,
    async describe(topic) {
      const session = await sessions.get(new AbortController().signal);
      if (session === undefined) throw new Error("aborted");
      return isFailure(session) ? session : await session.describe(topic);
    },
  });
  const window = createWindow({ bytes: 32_000_000 });
  const bench: Bench = {
    fault: () => undefined,
    away: undefined,
    leaders,
    partitions,
    stored: [],
    sends: [],
    opened: 0,
    closed: 0,
    describes: 0,
    publish: (batch, signal = new AbortController().signal) =>
      publishBatch({ sessions, topics, window }, batch, createAbortScope({ deadline: signal })),
  };
  return bench;
}

let number = 0;
function message(body: string, orderingKey?: string): OutgoingMessage {
  number += 1;
  const key = `k${number}`;
  return {
    id: String(number),
    type: "t",
    key,
    topic: "orders",
    body,
    contentType: "application/json",
    headers: { "rowpost-key": key },
    orderingKey,
    attempt: 1,
  };
}

const holds = (batch: PartitionBatch, text: string): boolean =>
  batch.records.some(({ value }) => String(value).includes(text));
const said = (results: readonly PublishResult[]): string[] =>
  results.map((result) => (result.status === "failed" ? `${result.scope} ${result.code}` : result.status));

describe("a batch that is refused", () => {
  test("is halved until the culprits stand alone; the others are stored once and know their own offsets", async () => {
    const bench = createBench();
    bench.fault = (batch) => (holds(batch, "BIG") ? TOO_LARGE : undefined);
    const bodies = Array.from({ length: 100 }, (_, index) => ([17, 18, 99].includes(index) ? "BIG" : `m${index}`));
    const results = await bench.publish(bodies.map((body) => message(body)));
    for (const [index, body] of bodies.entries()) {
      if (body === "BIG")
        expect(results[index]).toMatchObject({ status: "failed", scope: "message", retriable: false });
      else expect(results[index]).toEqual({ status: "sent", messageId: `orders-0@${bench.stored.indexOf(body)}` });
    }
    expect(bench.stored).toEqual(bodies.filter((body) => body !== "BIG"));
    expect(bench.sends.length).toBeLessThan(40);
  });

  test("stops the later messages of the culprit's key, also those of the same batch, and no others", async () => {
    const bench = createBench();
    bench.fault = (batch) => (holds(batch, "BIG") ? TOO_LARGE : undefined);
    const bodies = ["a1", "b1", "BIG", "b2", "a3", "a4", "b3"];
    const results = await bench.publish(bodies.map((body) => message(body, body.startsWith("b") ? "b" : "a")));
    expect(said(results)).toEqual([
      "sent",
      "sent",
      "message MESSAGE_TOO_LARGE",
      "sent",
      "notStarted",
      "notStarted",
      "sent",
    ]);
    expect(bench.stored).toEqual(["a1", "b1", "b2", "b3"]);
  });

  test("leaves the other partitions of its request alone", async () => {
    const bench = createBench({ partitions: 4 });
    bench.fault = (batch) => (holds(batch, "BIG") ? TOO_LARGE : undefined);
    const bodies = Array.from({ length: 40 }, (_, index) => (index === 11 ? "BIG" : `m${index}`));
    const results = await bench.publish(bodies.map((body) => message(body)));
    expect(results.filter(({ status }) => status === "sent")).toHaveLength(39);
    expect([...bench.stored].sort()).toEqual(bodies.filter((body) => body !== "BIG").sort());
    expect(bench.sends[0]).toHaveLength(4);
  });
});

describe("few requests", () => {
  test.each([
    [1, 1],
    [2, 2],
    [4, 4],
  ])("500 messages in 4 partitions of %d leaders: %d", async (leaders, requests) => {
    const bench = createBench({ leaders, partitions: 4 });
    await bench.publish(Array.from({ length: 500 }, (_, index) => message(`m${index}`)));
    expect(bench.sends).toHaveLength(requests);
  });

  test("large ones go in several, one after the other", async () => {
    const bench = createBench();
    const bodies = Array.from({ length: 5 }, (_, index) => `${index}${"x".repeat(400_000)}`);
    const results = await bench.publish(bodies.map((body) => message(body)));
    expect(said(results)).toEqual(bodies.map(() => "sent"));
    expect(bench.sends.map(([batch]) => batch?.records.length)).toEqual([2, 2, 1]);
    expect(bench.stored).toEqual(bodies);
  });
});

describe("a leader that moved", () => {
  test("is looked for, and what it refused goes out in order", async () => {
    const bench = createBench();
    let refusals = 2;
    bench.fault = () => {
      refusals -= 1;
      return refusals >= 0 ? MOVED : undefined;
    };
    const results = await bench.publish(["a", "b", "c"].map((body) => message(body, "key")));
    expect(said(results)).toEqual(["sent", "sent", "sent"]);
    expect(bench.stored).toEqual(["a", "b", "c"]);
    expect(bench.describes).toBe(3);
  });

  test("costs the others no wait, however many move at once", async () => {
    const bench = createBench({ partitions: 8 });
    const refusals = new Map<number, number>();
    bench.fault = ({ partition }) => {
      const refused = refusals.get(partition) ?? 0;
      refusals.set(partition, refused + 1);
      return refused < 1 ? MOVED : undefined;
    };
    const results = await bench.publish(Array.from({ length: 40 }, (_, index) => message(`m${index}`)));
    expect(refusals.size).toBe(8);
    expect(said(results)).toEqual(results.map(() => "sent"));
  });

  test("and is nowhere: the topic is away, nothing is counted", async () => {
    const bench = createBench();
    bench.fault = () => MOVED;
    expect(said(await bench.publish([message("a", "k"), message("b", "k"), message("c")]))).toEqual([
      "destination NOT_LEADER_OR_FOLLOWER",
      "notStarted",
      "destination NOT_LEADER_OR_FOLLOWER",
    ]);
  });
});

describe("a connection that breaks", () => {
  test("leaves unknown what was handed over, followers of the same request too; the rest waits for the next call", async () => {
    const bench = createBench();
    await bench.publish([message("before")]);
    bench.fault = () => LOST;
    const big = "x".repeat(900_000);
    const results = await bench.publish([message("a", "k"), message("b", "k"), message(big), message(big)]);
    expect(said(results)).toEqual([...Array(3).fill("unknown ECONNRESET"), "connection CONNECTION_LOST"]);
    bench.fault = () => undefined;
    expect(said(await bench.publish([message("after")]))).toEqual(["sent"]);
    expect([bench.opened, bench.closed]).toEqual([2, 1]);
  });

  test("and does not come about again: certainly not handed over", async () => {
    const bench = createBench();
    await bench.publish([message("before")]);
    bench.fault = () => {
      bench.away = REFUSED;
      return REFUSED;
    };
    expect(said(await bench.publish([message("a", "k"), message("b", "k"), message("c")]))).toEqual([
      "connection ECONNREFUSED",
      "notStarted",
      "connection ECONNREFUSED",
    ]);
    expect(said(await bench.publish([message("d")]))).toEqual(["connection ECONNREFUSED"]);
    bench.away = undefined;
    bench.fault = () => undefined;
    expect(said(await bench.publish([message("e")]))).toEqual(["sent"]);
  });
});

test("a name that no topic can have is not asked for", async () => {
  const bench = createBench();
  const results = await bench.publish([
    { ...message("a"), topic: "no blanks" },
    { ...message("b"), topic: ".." },
  ]);
  expect(said(results)).toEqual(["message INVALID_TOPIC_EXCEPTION", "message INVALID_TOPIC_EXCEPTION"]);
  expect(bench.describes).toBe(0);
});
