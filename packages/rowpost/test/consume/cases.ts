/** What holds for every consumer: on the real broker, through its usual client. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage } from "../../src/brokers/broker.ts";
import type { ConsumeOptions, Consumption, DeliveredMessage } from "../../src/consume/index.ts";
import type { Database } from "../../src/databases/database.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createInbox, type Inbox, MissingIdentityError } from "../../src/inbox/index.ts";
import { untilAborted } from "../../src/runtime/abort.ts";
import type { Logger } from "../../src/runtime/logger.ts";
import { createMetricsRegistry } from "../../src/runtime/metrics-registry.ts";
import { activeTraceHeaders } from "../../src/runtime/trace-context.ts";
import type { Transaction } from "../../src/transactions/executor.ts";
import { noDeadline, outgoing } from "../brokers/messages.ts";
import { createTestDatabase, type TestDatabase } from "../services.ts";
import { endedSpans, installTelemetry, SPAN, TRACEPARENT } from "../telemetry.ts";
import { countingHandler } from "./counting.ts";

/** Options as a case gives them. */
export type CaseOptions = Omit<ConsumeOptions<never>, "inbox" | "handler"> & {
  readonly inbox: Inbox | "none";
  readonly handler: (
    message: DeliveredMessage,
    context: { readonly signal: AbortSignal; readonly tx: Transaction },
  ) => unknown;
  readonly unhandled?: "redeliver" | ((raw: never, error: unknown) => unknown);
};

/** A topic of a test's own on a real broker. */
export interface ConsumerPlace {
  readonly topic: string;
  /** Publishes as rowpost does; closed with the place. */
  readonly broker: Broker;
  /** A message of another program, without identity. */
  publishForeign(body: string): Promise<void>;
  /** Starts a consumer of the one group. */
  consume(options: CaseOptions): Promise<Consumption>;
  /** What the broker would deliver to the group's next consumer. To be asked while none runs. */
  left(): Promise<number>;
  /** What consumer.process.mjs needs to start the same consumer. */
  readonly address: object;
  drop(): Promise<void>;
}

export interface ConsumerTraits {
  /** Comes again in its old place: later messages of the key are behind it. */
  readonly keepsOrder: boolean;
  /** One that is given up stays here, and is tried again. */
  readonly stays?: boolean;
  /** Of the process, which costs a session timeout each on some brokers. */
  readonly kills: number;
}

const PROGRAM = fileURLToPath(new URL("./consumer.process.mjs", import.meta.url));
/** A failing one is printed with the failure; put it here to see it again. */
const SEED = Number(process.env["ROWPOST_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** Numbers from 0 to 1, always the same ones. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return (state >>> 0) / 2 ** 32;
  };
}

interface Line {
  readonly level: string;
  readonly message: string;
}

function defineConsumerCases(
  make: () => Promise<ConsumerPlace>,
  { keepsOrder, kills, stays = false }: ConsumerTraits,
): void {
  let place: ConsumerPlace;
  let made: TestDatabase;
  let database: Database;
  let inbox: Inbox;
  let lines: Line[];
  const running: Consumption[] = [];
  const children = new Set<ChildProcess>();

  beforeEach(async () => {
    lines = [];
    made = await createTestDatabase("postgres");
    database = postgres({ url: made.url });
    inbox = createInbox({ database, consumer: "points" });
    await inbox.migrate();
    await database.transaction((tx) =>
      tx.query("CREATE TABLE effects (id BIGSERIAL PRIMARY KEY, message TEXT NOT NULL)"),
    );
    place = await make();
  });
  afterEach(async () => {
    for (const child of children) child.kill("SIGKILL");
    children.clear();
    for (const consumption of running.splice(0)) await consumption.close();
    await place?.drop();
    await database?.close();
    await made?.drop();
  });

  const logger: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (message) => void lines.push({ level: "warn", message }),
    error: (message) => void lines.push({ level: "error", message }),
  };

  async function publish(messages: readonly OutgoingMessage[]): Promise<void> {
    const results = await place.broker.publish(messages, noDeadline());
    expect(results.filter(({ status }) => status !== "sent")).toEqual([]);
  }

  const message = (key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage =>
    outgoing(key, { topic: place.topic, ...changes });

  async function consume(options: Partial<CaseOptions> & Pick<CaseOptions, "handler">): Promise<Consumption> {
    const retry = { baseMs: 1, maxMs: 5 };
    const consumption = await place.consume({ inbox, retry, logger, ...options });
    running.push(consumption);
    return consumption;
  }

  /** Keys of the effects, in the order of their commits as far as one key goes. */
  async function effects(): Promise<string[]> {
    const rows = await database.transaction((tx) => tx.query("SELECT message FROM effects ORDER BY id"));
    return (rows as { message: string }[]).map((row) => row.message);
  }

  test("a message with all its parts is handled once, and acknowledged", async () => {
    const headers = { ...outgoing("单 4711").headers, city: "上海" };
    await publish([
      message("单 4711", { headers, body: '{"total":"9.90"}', orderingKey: "客户 7" }),
      message("4712", { body: "{}" }),
    ]);
    const received: DeliveredMessage[] = [];
    const consumption = await consume({ handler: (each) => received.push(each) });
    await expect.poll(() => received.length).toBe(2);
    expect(await consumption.close()).toEqual({ drained: true });
    const first = received.find(({ key }) => key === "单 4711");
    expect(first).toMatchObject({
      type: "order.created",
      attempt: 1,
      contentType: "application/json",
      orderingKey: "客户 7",
    });
    expect(first?.headers).toMatchObject({ "rowpost-key": "单 4711", city: "上海" });
    expect(first?.json()).toEqual({ total: "9.90" });
    expect(await place.left()).toBe(0);
  });

  test("a second copy is acknowledged and has no effect", async () => {
    // Of one key: the last one is handled behind the copy.
    for (const key of ["4711", "4711", "4712"]) await publish([message(key, { orderingKey: "one" })]);
    const received: string[] = [];
    const consumption = await consume({ handler: ({ key }) => received.push(key) });
    await expect.poll(() => received.includes("4712")).toBe(true);
    await expect.poll(() => received.includes("4711")).toBe(true);
    await consumption.close();
    expect(received.toSorted()).toEqual(["4711", "4712"]);
    expect(await place.left()).toBe(0);
  });

  test("each outcome is counted and told once, in a span of the publisher's trace", async () => {
    const uninstall = installTelemetry();
    const metrics = createMetricsRegistry();
    const measured = createInbox({ database, consumer: "points", metrics });
    let topic = "";
    const counted = (outcome: string): number => metrics.value("rowpost_inbox_total", { consumer: "points", outcome });
    const traced = (key: string): OutgoingMessage =>
      message(key, { headers: { ...outgoing(key).headers, traceparent: TRACEPARENT } });
    const told: string[] = [];
    const inside: unknown[] = [];
    try {
      await measured.handle(database, { message: { type: "order.created", key: "again" } }, async () => undefined);
      await publish(["well", "late", "never", "again"].map(traced));
      const consumption = await consume({
        inbox: measured,
        metrics,
        retry: { maxAttempts: 2, baseMs: 1, maxMs: 5 },
        unhandled: () => undefined,
        on: {
          handled({ message, attempt }) {
            ({ topic } = message);
            told.push(`${message.key} ${attempt} handled`);
          },
          failed: ({ message: { key }, attempt, isLast }) => void told.push(`${key} ${attempt} ${isLast}`),
        },
        handler({ key }) {
          inside.push(activeTraceHeaders()?.["traceparent"]);
          if (key === "never" || (key === "late" && !told.includes("late 1 false"))) throw new RangeError("no points");
        },
      });
      await expect.poll(() => told.length).toBe(5);
      await expect.poll(() => counted("duplicate")).toBe(1);
      await consumption.close();
      expect(told.toSorted()).toEqual([
        ...["late 1 false", "late 2 handled", "never 1 false", "never 2 true", "well 1 handled"],
      ]);
      expect([counted("handled"), counted("failed")]).toEqual([3, 3]);
      expect(topic).toContain(place.topic);
      const labels = { consumer: "points", topic };
      expect(metrics.value("rowpost_handled_total", labels)).toBe(2);
      expect(metrics.value("rowpost_handle_duration_ms", labels)).toBe(5);
      expect(metrics.value("rowpost_handle_failures_total", { ...labels, scope: "message" })).toBe(3);
      expect(metrics.value("rowpost_redeliveries_total", labels)).toBe(2);
      expect(metrics.value("rowpost_dead_letters_total", labels)).toBe(1);
      expect(endedSpans.map(({ name, kind, traceId, parentId }) => [name, kind, traceId, parentId])).toEqual(
        Array.from({ length: 5 }, () => [`process ${topic}`, 4, SPAN.traceId, SPAN.spanId]),
      );
      expect(inside).toEqual(expect.arrayContaining(endedSpans.map((each) => `00-${each.traceId}-${each.spanId}-01`)));
      expect(endedSpans.filter(({ error }) => error === "no points")).toHaveLength(3);
    } finally {
      uninstall();
    }
  });

  test("is acknowledged after the commit: while the transaction is open, the broker still has it", async () => {
    await publish([message("4711")]);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isHandled = (): void => undefined;
    const handled = new Promise<void>((resolve) => {
      isHandled = resolve;
    });
    const consumption = await consume({
      drainTimeoutMs: 200,
      handler: () => undefined,
      // An ORM's transaction whose COMMIT takes long.
      transaction: async (work) =>
        await database.transaction(async (tx) => {
          const result = await work(tx);
          isHandled();
          await held;
          return result;
        }),
    });
    await handled;
    expect(await consumption.close()).toEqual({ drained: false });
    // A quorum queue has it back a moment after the channel has ended.
    await expect.poll(() => place.left()).toBe(1);
    release();
    await database.transaction(async () => undefined);
  });

  test("a handler that throws is called again, and later messages of its key wait", async () => {
    const keyed = (key: string, orderingKey: string): OutgoingMessage => message(key, { orderingKey });
    await publish([keyed("a1", "a"), keyed("b1", "b"), keyed("a2", "a"), keyed("b2", "b")]);
    const calls: string[] = [];
    const consumption = await consume({
      orderBy: ({ key }) => key.slice(0, 1),
      handler: ({ key }) => {
        calls.push(key);
        if (key === "a1" && calls.filter((each) => each === "a1").length < 4) throw new Error("not yet");
      },
    });
    await expect.poll(() => calls.includes("a2") && calls.includes("b2")).toBe(true);
    expect(await consumption.close()).toEqual({ drained: true });
    expect(calls.filter((key) => key.startsWith("a"))).toEqual(["a1", "a1", "a1", "a1", "a2"]);
    expect(await place.left()).toBe(0);
    expect(lines).toContainEqual({ level: "warn", message: "a message was not handled and is tried again" });
  });

  test("a handler that hangs has failed after its time: what it wrote is gone, what it writes later is refused", async () => {
    await publish([message("a1", { orderingKey: "a" }), message("a2", { orderingKey: "a" })]);
    const calls: string[] = [];
    let goOn = (): void => undefined;
    let late: unknown;
    const consumption = await consume({
      handlerTimeoutMs: 300,
      handler: async ({ key }, { signal, tx }) => {
        calls.push(key);
        await tx.query("INSERT INTO effects (message) VALUES ($1)", [`${key}, call ${calls.length}`]);
        if (calls.length > 1) return;
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        expect(signal.reason).toMatchObject({ code: "HANDLER_TIMEOUT" });
        late = await tx.query("INSERT INTO effects (message) VALUES ('late')").catch((error: unknown) => error);
      },
    });
    await expect.poll(() => calls).toEqual(["a1", "a1", "a2"]);
    goOn();
    await expect.poll(() => late).toMatchObject({ message: expect.stringContaining("has ended") });
    await consumption.close();
    expect(await effects()).toEqual(["a1, call 2", "a2, call 3"]);
    expect(await place.left()).toBe(0);
    expect(lines).toContainEqual({
      level: "warn",
      message: "a handler ended after its time was over; what it did stays",
    });
  });

  test("an ORM's transaction ends with its handler, also when that is late", async () => {
    await publish([message("4711")]);
    const steps: string[] = [];
    let isHandled = false;
    const consumption = await consume({
      handlerTimeoutMs: 100,
      handler: async (_message, { signal }) => {
        isHandled = steps.length > 0;
        if (isHandled) return;
        await untilAborted(signal);
        // Longer than a rollback.
        for (let turn = 0; turn < 5; turn += 1) await database.transaction((tx) => tx.query("SELECT 1"));
        steps.push("the handler ends");
      },
      transaction: async (work) =>
        await database.transaction(work).catch((error: unknown) => {
          steps.push("the transaction is rolled back");
          throw error;
        }),
    });
    await expect.poll(() => isHandled).toBe(true);
    await consumption.close();
    expect(await place.left()).toBe(0);
    expect(steps).toEqual(["the handler ends", "the transaction is rolled back"]);
  });

  test("one that has failed too often goes back to the broker, and comes again", async () => {
    await publish([message("4711")]);
    let calls = 0;
    let isWell = false;
    const consumption = await consume({
      retry: { maxAttempts: 2, baseMs: 1, maxMs: 1 },
      handler: () => {
        calls += 1;
        if (!isWell) throw new Error("not yet");
      },
    });
    await expect.poll(() => calls).toBeGreaterThanOrEqual(4);
    isWell = true;
    const after = calls;
    await expect.poll(() => calls).toBeGreaterThan(after);
    await consumption.close();
    expect(await place.left()).toBe(0);
    const where = stays ? "stays here, to be tried again" : "goes back to the broker";
    expect(lines).toContainEqual({ level: "error", message: `a message was not handled and ${where}` });
  });

  test("one without identity is parked where it is told, and those behind it are handled", async () => {
    await place.publishForeign("who am I");
    await publish([message("4711")]);
    const parked: { readonly raw: unknown; readonly error: unknown }[] = [];
    const received: string[] = [];
    const consumption = await consume({
      handler: ({ key }) => received.push(key),
      unhandled: (raw, error) => parked.push({ raw, error }),
    });
    await expect.poll(() => [received, parked.length]).toEqual([["4711"], 1]);
    await consumption.close();
    expect(parked[0]?.error).toBeInstanceOf(MissingIdentityError);
    expect(await place.left()).toBe(0);
  });

  test("one of another program is handled once by the identity that it is given, and each time without an inbox", async () => {
    for (const given of [inbox, "none"] as const) {
      const where = given === "none" ? "none" : "inbox";
      const copies = [`${where} 1`, `${where} 2`];
      for (const copy of copies) await place.publishForeign(copy);
      let committed = 0;
      const consumption = await consume({
        inbox: given,
        identity: () => ({ type: "invoice", key: "7" }),
        async transaction(work) {
          const result = await database.transaction((tx) => work(tx as never));
          committed += 1;
          return result;
        },
        handler: (each, { tx }) =>
          tx.query(`INSERT INTO effects (message) VALUES ('${each.type}:${each.key} ${each.text()}')`),
      });
      const ofThese = async (): Promise<string[]> => (await effects()).filter((each) => each.includes(where));
      if (given === "none") {
        // Each at least once: without an inbox a copy that the broker gives again has its effect
        // again.
        const distinct = async (): Promise<string[]> => [...new Set(await ofThese())].toSorted();
        await expect.poll(distinct).toEqual(copies.map((copy) => `invoice:7 ${copy}`));
      } else await expect.poll(() => committed).toBeGreaterThanOrEqual(copies.length);
      await consumption.close();
      if (given !== "none") expect(await ofThese()).toHaveLength(1);
      expect(await place.left()).toBe(0);
    }
  });

  test("one without identity is never acknowledged unless it is parked", async () => {
    await place.publishForeign("who am I");
    let refusals = 0;
    const consumption = await consume({
      handler: () => expect.unreachable("handled without identity"),
      unhandled: () => {
        refusals += 1;
        throw new Error("the car park is full");
      },
    });
    await expect.poll(() => refusals).toBeGreaterThanOrEqual(2);
    await consumption.close();
    await expect.poll(() => place.left()).toBe(1);
    expect(lines).toContainEqual({ level: "error", message: "a message was neither handled nor parked" });
  });

  test("keys do not wait for each other, and no more handlers run than are allowed", async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let meet = (): void => undefined;
    const met = new Promise<void>((resolve) => {
      meet = resolve;
    });
    await publish(["slow", "b", "c", "d", "e", "f"].map((key) => message(key, { orderingKey: key })));
    const received: string[] = [];
    let atOnce = 0;
    let most = 0;
    const consumption = await consume({
      concurrency: 2,
      handler: async ({ key }) => {
        atOnce += 1;
        most = Math.max(most, atOnce);
        if (atOnce === 2) meet();
        await (key === "slow" ? held : met);
        atOnce -= 1;
        received.push(key);
      },
    });
    await expect.poll(() => received.toSorted()).toEqual(["b", "c", "d", "e", "f"]);
    release();
    await expect.poll(() => received).toHaveLength(6);
    expect(most).toBe(2);
    await consumption.close();
    expect(await place.left()).toBe(0);
  });

  test("close under load waits for running handlers and acknowledges theirs; the rest is for the next one", async () => {
    const total = 120;
    await publish(Array.from({ length: total }, (_, index) => message(`k${index}`, { orderingKey: `k${index % 12}` })));
    const { handled, handler: count, running } = countingHandler();
    const handler: CaseOptions["handler"] = async (each, { tx }) => {
      await tx.query(`INSERT INTO effects (message) VALUES ('${each.key}')`);
      await count(each);
    };
    const first = await consume({ handler, concurrency: 4 });
    await expect.poll(() => handled.length).toBeGreaterThan(10);
    const [closed, again] = await Promise.all([first.close(), first.close()]);
    expect([closed, again, running()]).toEqual([{ drained: true }, { drained: true }, 0]);
    const atClose = handled.length;
    await new Promise((resolve) => setImmediate(resolve));
    expect(handled.length, "nothing begins after the close").toBe(atClose);
    const second = await consume({ handler, concurrency: 4 });
    await expect.poll(() => new Set(handled).size).toBe(total);
    await second.close();
    const committed = await effects();
    expect(committed, "each once").toHaveLength(total);
    expect(new Set(committed).size, "each").toBe(total);
    expect(await place.left()).toBe(0);
  });

  test("close resolves after the handler that runs, whose transaction goes on", async () => {
    await publish([message("4711")]);
    let beginClose = (): void => undefined;
    const closeBegan = new Promise<void>((resolve) => {
      beginClose = resolve;
    });
    const steps: string[] = [];
    const consumption = await consume({
      handler: async (_message, { tx }) => {
        steps.push("running");
        await closeBegan;
        // More round trips than any client needs to take its leave.
        for (let query = 0; query < 200; query += 1) await tx.query("SELECT 1");
        await tx.query("INSERT INTO effects (message) VALUES ('4711')");
        steps.push("done");
      },
    });
    await expect.poll(() => steps).toEqual(["running"]);
    const closing = consumption.close();
    beginClose();
    expect(await closing).toEqual({ drained: true });
    expect(steps).toEqual(["running", "done"]);
    expect(await effects()).toEqual(["4711"]);
    expect(await place.left()).toBe(0);
  });

  test("a process that is killed at random loses nothing, and repeats no effect", async () => {
    const [total, keys] = [200, 8];
    const random = randomFrom(SEED);
    const all = Array.from({ length: total }, (_, index) => `${index % keys}-${index}`);
    await publish(all.map((key) => message(key, { orderingKey: key.split("-")[0] ?? "" })));
    for (let kill = 0; kill <= kills; kill += 1) {
      const child = fork(PROGRAM, [JSON.stringify({ ...place.address, databaseUrl: made.url })], { execArgv: [] });
      children.add(child);
      const ended = once(child, "exit");
      let left = kill === kills ? Number.POSITIVE_INFINITY : 1 + Math.floor((random() * total) / kills);
      child.on("message", () => {
        left -= 1;
        if (left === 0) child.kill("SIGKILL");
      });
      if (kill === kills) {
        await expect.poll(async () => (await effects()).length, { timeout: 60_000 }).toBe(total);
        child.send("close");
      }
      await ended;
      children.delete(child);
      if ((await effects()).length === total && kill < kills) kill = kills - 1;
    }
    const committed = await effects();
    expect(committed.toSorted(), `seed ${SEED}`).toEqual(all.toSorted());
    if (keepsOrder) {
      for (let key = 0; key < keys; key += 1) {
        const ofKey = (each: string): boolean => each.startsWith(`${key}-`);
        expect(committed.filter(ofKey), `seed ${SEED}`).toEqual(all.filter(ofKey));
      }
    }
    await expect.poll(() => place.left()).toBe(0);
  }, 300_000);
}

/** One block of {@link defineConsumerCases}. */
export function describeConsumer(title: string, make: () => Promise<ConsumerPlace>, traits: ConsumerTraits): void {
  describe(title, () => defineConsumerCases(make, traits));
}
