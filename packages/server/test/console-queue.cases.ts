/** The queue's pages, unconfirmed messages and the doctor, on any database, over the API. */
import { createOutbox, type Database, messageType } from "rowpost";
import { createQueue, type Queue } from "rowpost/queue";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { RouteName } from "../src/http/routes.ts";
import { type Answered, type ConsoleBench, openConsole, type Sent } from "./console.ts";

const TYPE = "urn:rowpost:problem:";
const reason = "the invoices were wrong";

/** Defines them; `create` makes an empty database. */
export function consoleQueueCases(create: () => Promise<{ readonly database: Database; drop(): Promise<void> }>): void {
  let bench: ConsoleBench;
  let queue: Queue;
  let drop: () => Promise<void>;
  beforeAll(async () => {
    const made = await create();
    drop = () => made.drop();
    bench = await openConsole(made.database);
    queue = createQueue({ database: made.database });
  });
  afterAll(async () => {
    await queue.close();
    await bench.close();
    await drop();
  });

  const as = (role: "reader" | "operator" | "admin", name: RouteName, sent: Sent = {}): Promise<Answered> =>
    bench.ask(name, { token: bench.tokens[role], ...sent });
  const items = ({ json }: Answered) => json["items"] as Record<string, unknown>[];

  /** A topic of its own, whose group has taken all; what the handler throws for is dead. */
  async function consumed(topic: string, bodies: readonly unknown[], isBad: (body: unknown) => boolean = () => false) {
    await queue.createTopic({ topic, partitions: 2 });
    const group = "billing";
    const hasEnded = () =>
      queue.groups({ topic, group }).then(([one]) => one?.lag.count === 0 && one.waiting.count === 0);
    const consumer = await queue.consume({
      topic,
      group,
      logger: "silent",
      from: "start",
      retry: { maxAttempts: 1 },
      handler: ({ body }) => {
        if (isBad(body)) throw new Error("no such customer");
      },
    });
    const ids: string[] = [];
    for (const [index, body] of bodies.entries())
      ids.push(...(await queue.append({ topic, key: `k-${index}`, type: "order.paid", body })));
    await vi.waitUntil(hasEnded, { timeout: 60_000, interval: 20 });
    await consumer.stop();
    return { ids, params: { topic, group } };
  }
  const audit = async (action: string): Promise<Record<string, unknown>[]> =>
    items(await as("admin", "audit", { query: { action } }));

  test("a database without a message queue is told, and is no error", async () => {
    const answer = await as("reader", "queueTopics");
    expect(answer.json).toMatchObject({ tables: false, items: [] });
    const other = await as("reader", "queueGroups", { params: { topic: "orders" } });
    expect([other.status, String(other.json["detail"])]).toEqual([
      404,
      expect.stringContaining("rowpost queue create"),
    ]);
    await queue.migrate();
    expect((await as("reader", "queueTopics")).json).toMatchObject({ tables: true, items: [] });
  });

  test("messages are found by key, header and time, page by page, and say who consumed them", async () => {
    const { ids, params } = await consumed(
      "looked",
      Array.from({ length: 5 }, (_, index) => ({ index })),
    );
    const seen: unknown[] = [];
    let cursor: string | undefined;
    do {
      const query: Record<string, string> = { limit: "2", ...(cursor === undefined ? {} : { cursor }) };
      const page = await as("reader", "queueMessages", { params, query });
      seen.push(...items(page).map(({ id }) => id));
      cursor = (page.json["next"] as string | null) ?? undefined;
      if (cursor === undefined) break;
      const foreign = await as("reader", "queueMessages", { params, query: { key: "x", cursor } });
      expect([foreign.status, foreign.json["type"]]).toEqual([400, `${TYPE}invalid-request`]);
    } while (cursor !== undefined);
    expect(seen.map(String).toSorted()).toEqual([...ids].toSorted());
    const byKey = await as("reader", "queueMessages", { params, query: { key: "k-3" } });
    expect(byKey.json).toMatchObject({
      items: [{ id: ids[3], key: "k-3", type: "order.paid" }],
      searched: { complete: true, stopped: "end", droppedMonths: [] },
    });
    const before = { before: "2020-01-01T00:00:00Z" };
    expect(items(await as("reader", "queueMessages", { params, query: before }))).toEqual([]);
    const [id = ""] = ids;
    const shown = await as("reader", "queueMessage", { params: { ...params, id } });
    expect(shown.json).toMatchObject({
      groups: [{ group: "billing", state: "consumed" }],
      attempts: [{ group: "billing", round: 0, attempt: 1, result: "consumed" }],
    });
    expect(shown.text).not.toContain("index");
    const body = await as("operator", "queueBody", { params: { ...params, id } });
    expect(body.json).toMatchObject({ body: '{"index":0}', truncated: false });
    expect((await audit("queue body"))[0]).toMatchObject({ author: "the operator", details: { topic: "looked", id } });
    expect((await as("reader", "queueMessage", { params: { ...params, id: "17" } })).status).toBe(404);
  });

  test("a group is paused and resumed, with who and why written down before and after", async () => {
    const { params } = await consumed("paused", [1]);
    const sent = { params, body: { reason } };
    expect((await as("operator", "queuePause", sent)).json).toEqual({ changed: true });
    expect((await as("operator", "queuePause", sent)).json).toEqual({ changed: false });
    const [group] = await queue.groups({ topic: "paused" });
    expect(group?.paused).toMatchObject({ author: "the operator", reason });
    expect((await as("operator", "queueResume", sent)).json).toEqual({ changed: true });
    const entries = await audit("queue resume");
    expect(entries.slice(0, 2)).toMatchObject([
      { result: "done", author: "the operator", reason, details: { ...params, changed: true } },
      { result: "begun", author: "the operator", reason, details: params },
    ]);
    const none = { params: { ...params, group: "nobody" }, body: { reason } };
    expect((await as("operator", "queuePause", none)).status).toBe(404);
    expect((await audit("queue pause"))[0]).toMatchObject({ result: "conflict", changed: 0 });
    const wrong = { params: { topic: "No Such", group: "x" }, body: { reason } };
    expect((await as("operator", "queuePause", wrong)).status).toBe(400);
  });

  test("dead letters are listed by error, delivered again, edited as a copy, and discarded", async () => {
    const { ids, params } = await consumed("dead", [1, 2, 3, 4], () => true);
    const dead = async (query: Record<string, string> = {}) => await as("reader", "queueDead", { params, query });
    const first = await dead({ limit: "3" });
    expect(items(first)).toHaveLength(3);
    expect(items(first)[0]).toMatchObject({
      state: "dead",
      attempt: 1,
      error: expect.stringContaining("no such customer"),
    });
    const cursor = String(first.json["next"]);
    expect(items(await dead({ limit: "3", cursor }))).toHaveLength(1);
    expect(items(await dead({ error: "something else" }))).toEqual([]);
    expect((await dead({ error: "something else", cursor })).status).toBe(400);
    const [one = "", two = "", three = ""] = ids;
    const redelivered = await as("operator", "queueRedeliver", { params, body: { reason, ids: [one, "17"] } });
    expect(redelivered.json).toEqual({ changed: 1, conflicts: [{ id: "17", state: "absent" }] });
    const [record] = (await queue.message("dead", one))?.attempts ?? [];
    expect(record).toMatchObject({ result: "redelivered", error: expect.stringMatching(`: ${reason}$`) });
    const gone = await as("admin", "queueDiscard", { params, body: { reason, ids: [two] } });
    expect(gone.json).toEqual({ changed: 1, conflicts: [] });
    const edited = await as("admin", "queueEdit", { params, body: { reason, id: three, body: '{"total":13}' } });
    expect(edited.status).toBe(200);
    const copy = await queue.message("dead", String(edited.json["copy"]));
    expect(copy?.body).toEqual({ total: 13 });
    const again = await as("admin", "queueEdit", { params, body: { reason, id: three, body: "{}" } });
    expect([again.status, again.json["type"]]).toEqual([409, `${TYPE}state-conflict`]);
    const bad = await as("admin", "queueEdit", { params, body: { reason, id: String(ids[3]), body: "{" } });
    expect(bad.status).toBe(400);
    for (const body of [{ reason }, { reason, all: true, ids: [one] }, { all: true }])
      expect((await as("operator", "queueRedeliver", { params, body })).status).toBe(400);
    expect((await as("operator", "queueSkip", { params, body: { reason, id: "17" } })).status).toBe(409);
    expect((await as("operator", "queueSkip", { params, body: { reason, id: one } })).json).toEqual({ changed: true });
  });

  describe("rewinding", () => {
    test("is planned, done as it was planned, and taken back", async () => {
      const { params } = await consumed("rewound", [1, 2, 3, 4]);
      const at = async () => (await queue.groups({ topic: "rewound" }))[0]?.partitions.map(({ nextId }) => nextId);
      const before = await at();
      const yesterday = new Date(Date.now() - 86_400_000).toISOString();
      const plan = async (to: string) => await as("operator", "queueRewindPlan", { params, query: { to } });
      const found = await plan(`time:${yesterday}`);
      expect(found.json).toMatchObject({ messages: 4, consumed: 4, droppedMonths: [] });
      expect(await at()).toEqual(before);
      const parts = found.json["partitions"] as { readonly partition: number; readonly from: string }[];
      const expected = parts.map(({ from, partition }) => ({ partition, from }));
      const rewind = { reason, to: `time:${yesterday}`, expected };
      // Somebody else was faster.
      const moved = { ...rewind, expected: expected.map((each) => ({ ...each, from: "17" })) };
      const refused = await as("operator", "queueRewind", { params, body: moved });
      expect([refused.status, refused.json["type"]]).toEqual([409, `${TYPE}state-conflict`]);
      expect(await at()).toEqual(before);
      expect((await audit("queue rewind"))[0]).toMatchObject({ result: "conflict", author: "the operator" });
      const done = await as("operator", "queueRewind", { params, body: rewind });
      expect(done.json).toMatchObject({ rewind: 1, setAside: 0 });
      expect(await at()).not.toEqual(before);
      const undo = await plan("undo");
      expect(undo.json).toMatchObject({ messages: 4, consumed: 4 });
      const back = (undo.json["partitions"] as typeof parts).map(({ from, partition }) => ({ partition, from }));
      const undone = await as("operator", "queueRewind", { params, body: { reason, to: "undo", expected: back } });
      expect(undone.json).toMatchObject({ rewind: 2 });
      expect(await at()).toEqual(before);
      const log = items(await as("reader", "queueRewinds", { params }));
      expect(
        new Set(
          log.map(({ author, rewind: number, undoOf }) => `${String(author)} ${String(number)} ${String(undoOf)}`),
        ),
      ).toEqual(new Set(["the operator 2 1", "the operator 1 null"]));
      expect((await plan("undo")).status).toBe(409);
    });

    test("goes to an id, so many back, the start, the end; what is none of these is refused", async () => {
      const { ids, params } = await consumed("goals", [1, 2]);
      const plan = (to: string) => as("operator", "queueRewindPlan", { params, query: { to } });
      expect((await plan(`id:${ids[1]}`)).json).toMatchObject({ messages: 1 });
      expect((await plan("start")).json).toMatchObject({ messages: 2 });
      expect((await plan("end")).json).toMatchObject({ messages: 0, partitions: [] });
      expect((await plan("back:1")).status).toBe(200);
      for (const to of ["yesterday", "time:yesterday", "time:2026-11-23T12:00", "back:0", "back:-1", "id:x", ""])
        expect([to, (await plan(to)).status]).toEqual([to, 400]);
      expect((await plan("group:nobody")).status).toBe(404);
    });
  });

  test("what is sent and not confirmed is listed by type, with who has not confirmed it", async () => {
    const { database } = bench;
    const paid = messageType<number>("order.paid", {
      topic: "orders",
      confirm: { withinMs: 600_000, consumers: ["billing", "stock"] },
    });
    const outbox = createOutbox({ database, types: [paid] });
    const keys = ["done", "late", "early"];
    await outbox.transaction((tx) =>
      outbox.enqueue(
        tx,
        keys.map((key) => paid.message({ key, body: 1 })),
      ),
    );
    await bench.sql(
      "UPDATE local_message SET state = 2, next_retry_at = '2020-01-01' WHERE message_type = 'order.paid'",
    );
    await bench.sql("UPDATE local_message SET next_retry_at = '2990-01-01' WHERE message_key = 'early'");
    const said = (key: string, consumer: string) => outbox.confirm([{ type: "order.paid", key, consumer }]);
    for (const [key, consumer] of [
      ["done", "billing"],
      ["done", "stock"],
      ["late", "stock"],
    ] as const)
      await said(key, consumer);
    await said("never", "billing");
    const { json } = await as("reader", "unconfirmed");
    expect(json).toMatchObject({
      types: [
        {
          type: "order.paid",
          overdue: { value: 1, relation: "eq" },
          waiting: { value: 1 },
          consumers: ["billing", "stock"],
        },
      ],
      items: [
        { key: "late", confirmedBy: ["stock"], missing: ["billing"] },
        { key: "early", confirmedBy: [], missing: ["billing", "stock"] },
      ],
      more: false,
      unknown: [{ type: "order.paid", key: "never", consumer: "billing", times: 1, isThere: false }],
    });
  });

  test("the doctor says what is wrong in the language that is asked for, and examines once for all who ask", async () => {
    const [en, zh] = await Promise.all([
      as("reader", "doctor"),
      as("reader", "doctor", { headers: { "accept-language": "zh-CN,zh;q=0.9" } }),
    ]);
    const of = ({ json }: Answered) => (json["found"] as Record<string, string>[]).find(({ id }) => id === "D401");
    expect(of(en)).toMatchObject({
      what: expect.stringContaining("no relay is running"),
      mend: expect.stringContaining("rowpost relay"),
    });
    expect(of(zh)).toMatchObject({
      what: expect.stringContaining("没有 relay 在运行"),
      command: "rowpost relay --database URL --broker URL",
    });
    expect(zh.json["asOf"]).toBe(en.json["asOf"]);
    expect(zh.headers.get("content-language")).toBe("zh");
  });
}
