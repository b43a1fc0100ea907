/**
 * createOutbox on SQLite in memory: what is checked and written, and that an error writes nothing.
 */
import { afterEach, beforeEach, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { inSpan, installTelemetry, SPAN, TRACEPARENT } from "../../test/telemetry.ts";
import type { Database } from "../databases/database.ts";
import { createLayout, messageTableLayout, tLocalMessageLayout } from "../databases/sql/layouts.ts";
import { migrate } from "../databases/sql/migrate.ts";
import { sqlite } from "../databases/sqlite/index.ts";
import type { MessageLimits, NewMessage } from "../message/message.ts";
import { messageType } from "../message/message-type.ts";
import {
  ConfigurationError,
  DuplicateMessageError,
  InvalidMessageError,
  TransactionRequiredError,
} from "../runtime/errors.ts";
import type { Transaction } from "../transactions/executor.ts";
import type { EnqueueStatus } from "./message-writer.ts";
import { createOutbox, type Outbox } from "./outbox.ts";

let database: Database;
let outbox: Outbox;
beforeEach(async () => {
  database = sqlite({ file: ":memory:" });
  await migrate(database, { layout: database.defaultLayout });
  outbox = createOutbox({ database });
});
afterEach(() => database.close());

const message = (key: string, change: Partial<NewMessage> = {}): NewMessage => ({
  type: "t",
  key,
  topic: "x",
  body: { key },
  ...change,
});

interface StoredRow {
  readonly message_key: string;
  readonly message_body: string;
  readonly headers: string | null;
  readonly created_by: string;
}

const rows = (): Promise<StoredRow[]> =>
  database.transaction((tx) => tx.query<StoredRow>("SELECT * FROM local_message ORDER BY id"));
const enqueue = (given: NewMessage | readonly NewMessage[], use: Outbox = outbox): Promise<unknown> =>
  use.transaction(async (tx) => {
    const answer: unknown = await use.enqueue(tx, given as NewMessage);
    return answer;
  });

test("one message has one status, several have an array, none is no statement", async () => {
  expect(await enqueue(message("a"))).toBe("enqueued");
  expect(await enqueue([message("b"), message("c")])).toEqual(["enqueued", "enqueued"]);
  expect(await enqueue([])).toEqual([]);
  expect((await rows()).map((row) => row.message_key)).toEqual(["a", "b", "c"]);
});

test("one that is wrong keeps the whole call out, and the transaction goes on", async () => {
  await outbox.transaction(async (tx) => {
    for (const wrong of [message(" "), message("y", { body: 1n }), message("z", { headers: { "rowpost-id": "1" } })]) {
      await expect(outbox.enqueue(tx, [message("fine"), wrong])).rejects.toBeInstanceOf(InvalidMessageError);
    }
    await outbox.enqueue(tx, message("after"));
  });
  expect((await rows()).map((row) => row.message_key)).toEqual(["after"]);
});

test("the handle is looked at before the messages, and both before any SQL", async () => {
  await expect(outbox.enqueue({}, message(""))).rejects.toBeInstanceOf(TransactionRequiredError);
  await expect(outbox.enqueue(undefined, message("a"))).rejects.toBeInstanceOf(TransactionRequiredError);
});

test("a duplicate throws or is reported, as the outbox or the call says", async () => {
  await enqueue(message("a"));
  await expect(enqueue(message("a"))).rejects.toBeInstanceOf(DuplicateMessageError);
  const lenient = createOutbox({ database, onDuplicate: "ignore" });
  expect(await enqueue([message("a"), message("b"), message("b")], lenient)).toEqual([
    "duplicate",
    "enqueued",
    "duplicate",
  ]);
  await lenient.transaction(async (tx) => {
    await expect(lenient.enqueue(tx, message("a"), { onDuplicate: "throw" })).rejects.toBeInstanceOf(
      DuplicateMessageError,
    );
  });
  await outbox.transaction(async (tx) => {
    await expect(outbox.enqueue(tx, message("a"), { onDuplicate: "skip" as never })).rejects.toBeInstanceOf(
      ConfigurationError,
    );
  });
});

test("a declared type's schema checks the body, at once or later, and what it returns is stored", async () => {
  const checked = messageType("order", {
    topic: "x",
    key: ({ id }) => id,
    schema: z.object({ id: z.string().refine(async (id) => id !== "bad", "is bad"), amount: z.number().default(7) }),
  });
  await enqueue([
    checked.message({ body: { id: "a" } }),
    { ...checked.message({ body: { id: "b" } }), headers: { a: "b" } },
  ]);
  expect((await rows()).map((row) => JSON.parse(row.message_body) as unknown)).toEqual([
    { id: "a", amount: 7 },
    { id: "b", amount: 7 },
  ]);
  await expect(enqueue([message("fine"), checked.message({ body: { id: "bad" } })])).rejects.toThrow(
    "the body of order:bad does not fit its schema: id: is bad",
  );
  const sync = messageType("order", { topic: "x", schema: z.object({ id: z.string() }) });
  await expect(enqueue(sync.message({ key: "k", body: { id: 5 as never } }))).rejects.toBeInstanceOf(
    InvalidMessageError,
  );
  expect(await rows()).toHaveLength(2);
});

test("createdBy comes from the message, else from the outbox, else it is rowpost", async () => {
  const shop = createOutbox({ database, createdBy: "shop" });
  await enqueue([message("a"), message("b", { createdBy: "job" })], shop);
  await enqueue(message("c"));
  expect((await rows()).map((row) => row.created_by)).toEqual(["shop", "job", "rowpost"]);
});

test("limits can be lowered and raised, and are those of the layout otherwise", async () => {
  const tight = createOutbox({ database, limits: { key: 3, bodyBytes: 10 } });
  await expect(enqueue(message("long"), tight)).rejects.toThrow("at most 3");
  await expect(enqueue(message("k", { body: "0123456789" }), tight)).rejects.toThrow("at most 10");
  const wide = createOutbox({ database, limits: { key: 200, type: undefined } as unknown as Partial<MessageLimits> });
  await enqueue(message("x".repeat(200)), wide);
  await expect(enqueue(message("x".repeat(200)))).rejects.toThrow("at most 128");
  expect(() => createOutbox({ database, limits: { key: 0 } })).toThrow(ConfigurationError);
  expect(() => createOutbox({ database, limits: { keys: 5 } as never })).toThrow("limits.keys is not a limit");
  expect(() => createOutbox({ database, onDuplicate: "skip" as never })).toThrow(ConfigurationError);
});

test("a layout's missing column is named, at creation or at the message", async () => {
  const bare = createOutbox({ database, layout: messageTableLayout });
  await expect(enqueue(message("a", { orderingKey: "c" }), bare)).rejects.toThrow(
    /layout message_table has no column .*columns\.orderingKey/,
  );
  expect(() => createOutbox({ database, layout: messageTableLayout, createdBy: "shop" })).toThrow("columns.createdBy");
  expect(() => createOutbox({ database, layout: tLocalMessageLayout, createdBy: "shop" })).not.toThrow();
  const own = createLayout({ base: messageTableLayout, columns: { orderingKey: "ordering_key" } });
  expect(() => createOutbox({ database, layout: own })).not.toThrow();
});

test("the active span's context goes into the headers, and a message's own wins", async () => {
  const uninstall = installTelemetry();
  try {
    const given = [message("a"), message("b", { headers: { traceparent: "mine", a: "b" } })];
    await inSpan(SPAN, () => enqueue(given));
    await enqueue(message("c"));
  } finally {
    uninstall();
  }
  expect((await rows()).map(({ headers }) => headers && JSON.parse(headers))).toEqual([
    { traceparent: TRACEPARENT },
    { traceparent: "mine", a: "b" },
    null,
  ]);
});

test("wake rings the doorbell, and so does a commit", async () => {
  let rings = 0;
  const end = database.doorbell.subscribe(() => (rings += 1));
  outbox.wake();
  await outbox.transaction(async () => {});
  await outbox.transaction(() => Promise.reject(new Error("no"))).catch(() => {});
  end();
  expect(rings).toBe(2);
});

test("types: one message has one status, an array has an array, and a transaction gives what its work gives", () => {
  const typed = messageType<{ id: string }>("t", { topic: "x" }).message({ key: "k", body: { id: "a" } });
  expectTypeOf(() => outbox.enqueue({}, typed)).returns.resolves.toEqualTypeOf<EnqueueStatus>();
  expectTypeOf(() => outbox.enqueue({}, [typed, message("a")])).returns.resolves.toEqualTypeOf<EnqueueStatus[]>();
  expectTypeOf(() => outbox.transaction(async () => 5)).returns.resolves.toEqualTypeOf<number>();
  expectTypeOf(() => outbox.transaction({}, async (tx) => tx)).returns.resolves.toEqualTypeOf<Transaction>();
});

test.each([
  [{ pool: {} }, /createOutbox takes \{ database \}, made by mysql/],
  [undefined, /createOutbox takes \{ database \}/],
  [{ database: {} }, /createOutbox takes \{ database \}/],
  [{ layout: "t_local_message" }, /layout is "t_local_message"; it must be an object: tLocalMessageLayout/],
  [{ onDuplicates: "ignore" }, /"onDuplicates" is not an option \(database, layout/],
])("options of the wrong shape are refused by name: %s", (options, reason) => {
  const own = options !== undefined && ("layout" in options || "onDuplicates" in options);
  const given = (own ? { database, ...options } : options) as Parameters<typeof createOutbox>[0];
  const make = (): unknown => createOutbox(given);
  expect(make).toThrow(ConfigurationError);
  expect(make).toThrow(reason);
});

test("an enqueue without the table, or with an option that there is not, says what helps", async () => {
  await database.transaction((tx) => tx.query("DROP TABLE local_message"));
  await expect(enqueue(message("a"))).rejects.toMatchObject({
    code: "SCHEMA",
    message: expect.stringMatching(/rowpost migrate/),
  });
  const wrong = outbox.transaction((tx) => outbox.enqueue(tx, message("a"), { ignore: true } as object));
  await expect(wrong).rejects.toThrow(/enqueue: "ignore" is not an option/);
});
