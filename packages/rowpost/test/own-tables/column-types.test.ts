/** Columns of a message table of one's own: what is written comes back, or the table is refused. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { examine } from "../../src/admin/doctor/examine.ts";
import { memory } from "../../src/brokers/memory.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { createLayout, type LayoutOptions } from "../../src/databases/sql/layouts.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import type { NewMessage } from "../../src/message/message.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { InvalidMessageError, SchemaError } from "../../src/runtime/errors.ts";
import { NO_OPTIONAL_COLUMNS } from "../contracts/store-contract/cases/layouts.ts";
import { testDialect } from "../contracts/test-dialect.ts";
import { describeOnEach, type OwnTablePlace } from "./bench.ts";

/** The words of an ENUM, each in the place of another one's number. */
const STATE_WORDS = {
  pending: "1",
  sending: "0",
  sent: "sent",
  failed: "it's failed",
  consumed: "已消费",
  suspended: "5",
};
const WORDS = ["0", "1", "sent", "it''s failed", "已消费", "5"].map((word) => `'${word}'`).join(", ");

const TYPED: LayoutOptions = {
  table: "app_event",
  columns: { ...NO_OPTIONAL_COLUMNS, contentType: "content_type", headers: "headers", lockVersion: "lock_version" },
};

/** Every byte, which is no UTF-8. */
const BYTES = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

describeOnEach("column types of one's own table", (open, { dialect, name }) => {
  let place: OwnTablePlace;
  beforeEach(async () => {
    place = await open();
  });
  afterEach(() => place.close());

  async function makeTable(types: Partial<Record<string, string>>): Promise<void> {
    const { idColumn, instantType } = testDialect(dialect);
    const columns: Record<string, string | undefined> = {
      id: idColumn,
      message_type: "VARCHAR(64) NOT NULL",
      message_key: "VARCHAR(128) NOT NULL",
      topic: "VARCHAR(255) NOT NULL",
      message_body: "TEXT NOT NULL",
      headers: "TEXT",
      content_type: "VARCHAR(64)",
      state: "INT NOT NULL DEFAULT 0",
      retry_count: "INT NOT NULL DEFAULT 0",
      next_retry_at: `${instantType} NULL`,
      fail_reason: "VARCHAR(1024)",
      lock_version: "BIGINT NOT NULL DEFAULT 0",
      gmt_create: instantType,
      gmt_modified: instantType,
      ...types,
    };
    const listed = Object.entries(columns).map(([column, type]) => `${column} ${type}`);
    await place.sql(`CREATE TABLE app_event (${listed.join(", ")}, UNIQUE (message_type, message_key))`);
  }

  async function enqueue(layout: TableLayout, ...messages: readonly NewMessage[]): Promise<void> {
    const outbox = createOutbox({ database: place.database, layout });
    await outbox.transaction((tx) => outbox.enqueue(tx, messages));
  }

  async function published(layout: TableLayout) {
    const broker = memory();
    const relay = createRelay({ database: place.database, broker, layout, logger: "silent" });
    await relay.drain();
    await relay.stop();
    return broker.published("orders");
  }

  /** Bodies as a scan brings them, and as they are read when they are too large for it. */
  async function scanned(layout: TableLayout) {
    const store = place.database.relayStore({ layout });
    await store.open({ sendingMark: "on", statementTimeoutMs: 5_000, lockWaitTimeoutMs: 1_000 });
    const request = { shards: undefined, afterId: "0", immediateLimit: 10, dueLimit: 10 };
    const left = await store.scan({ ...request, bodyLimit: 2 });
    const whole = await store.scan({ ...request, bodyLimit: 100_000 });
    const read = await store.readBodies(left.map(({ id }) => id));
    await store.close();
    expect(left.map(({ body }) => body)).toEqual(left.map(() => null));
    expect(whole.map(({ id }) => read.get(id))).toEqual(whole.map(({ body }) => body));
    return whole;
  }

  const jsonTypes = dialect === "postgres" ? ["json", "jsonb"] : ["JSON"];
  for (const type of jsonTypes) {
    test(`${type}: bodies and headers are written, read, listed, copied, archived and published as JSON`, async () => {
      await makeTable({ message_body: `${type} NOT NULL`, headers: type });
      const layout = createLayout({ ...TYPED, bodyType: "json", headersType: "json" });
      await migrate(place.database, { layout });
      const body = { b: "订单 💥 '\"\\", a: [1, -2.5, null, true], nested: { long: "x".repeat(3_000) } };
      const headers = { trace: "1", name: "值 💥" };
      const at = { topic: "orders", type: "order.created" };
      await enqueue(
        layout,
        { ...at, key: "1", body, headers },
        { ...at, key: "2", body: { text: "plain" }, contentType: "application/vnd.shop+json" },
      );
      const rows = await scanned(layout);
      expect(rows.map((row) => JSON.parse(String(row.body)) as unknown)).toEqual([body, { text: "plain" }]);
      expect(rows.map((row) => row.bodyBytes)).toEqual(rows.map((row) => Buffer.byteLength(String(row.body))));
      const sent = await published(layout);
      expect(sent.map(({ body: text }) => JSON.parse(String(text)) as unknown)).toEqual([body, { text: "plain" }]);
      expect(sent.map(({ contentType }) => contentType)).toEqual(["application/json", "application/vnd.shop+json"]);
      expect(sent[0]?.headers).toMatchObject(headers);

      const admin = place.database.messageAdmin({ layout });
      const { messages } = await admin.list({ filter: { key: "1" }, limit: 5 });
      const [message] = messages;
      if (message === undefined) throw new Error("not listed");
      const shown = await admin.show(message);
      expect(JSON.parse(shown?.body ?? "")).toEqual(body);
      expect(JSON.parse(shown?.headers ?? "")).toEqual(headers);
      const action = { author: "ann", reason: "test" };
      const seen = { id: message.id, lockVersion: message.lockVersion ?? "0" };
      await admin.copy({ seen, original: "archive", action, change: { key: "copy", body: '{"changed": 1}' } });
      const archived = await admin.show(message);
      expect([archived?.archived, JSON.parse(archived?.body ?? "")]).toEqual([true, body]);
      await admin.close();
      expect((await published(layout)).map(({ body: text }) => JSON.parse(String(text)) as unknown)).toEqual([
        { changed: 1 },
      ]);
    });

    test(`${type}: a body that is no JSON is refused before it is sent`, async () => {
      await makeTable({ message_body: `${type} NOT NULL` });
      const layout = createLayout({ ...TYPED, bodyType: "json" });
      await migrate(place.database, { layout });
      const at = { topic: "orders", type: "order.created", key: "1" };
      for (const message of [
        { ...at, body: "text", contentType: "text/plain" },
        { ...at, body: BYTES },
        { ...at, body: { text: "a\0b" } },
        { ...at, body: { text: "half \ud800" } },
      ]) {
        await expect(enqueue(layout, message)).rejects.toThrow(InvalidMessageError);
      }
      await enqueue(layout, { ...at, body: { text: "\\u0000, no escape" } });
      expect((await published(layout)).map(({ body }) => body)).toEqual([expect.stringContaining("\\\\u0000")]);
    });
  }

  const binaryTypes = { mysql: ["BLOB", "VARBINARY(3000)"], postgres: ["bytea"], sqlite: ["BLOB"] }[dialect];
  for (const type of binaryTypes) {
    test(`${type}: every byte comes back, and text as text`, async () => {
      await makeTable({ message_body: `${type} NOT NULL` });
      const layout = createLayout({ ...TYPED, bodyType: "binary", limits: { bodyBytes: 1_000 } });
      await migrate(place.database, { layout });
      const at = { topic: "orders", type: "order.created" };
      // As base64 it would be longer than the limit.
      const most = Buffer.concat([BYTES, BYTES, BYTES]);
      await enqueue(
        layout,
        { ...at, key: "1", body: most },
        { ...at, key: "2", body: { json: "订单 💥" } },
        { ...at, key: "3", body: "text ü\n", contentType: "text/plain; charset=utf-8" },
        { ...at, key: "4", body: Buffer.from("{looks like JSON}"), contentType: "application/x-protobuf" },
      );
      const hex = dialect === "postgres" ? "encode(message_body, 'hex')" : "HEX(message_body)";
      const rows = await place.sql(`SELECT LOWER(${hex}) AS body, content_type FROM app_event ORDER BY id`);
      expect(rows.map((row) => [row["body"], row["content_type"]])).toEqual([
        [most.toString("hex"), "application/octet-stream"],
        [Buffer.from('{"json":"订单 💥"}').toString("hex"), null],
        [Buffer.from("text ü\n").toString("hex"), "text/plain; charset=utf-8"],
        [Buffer.from("{looks like JSON}").toString("hex"), "application/x-protobuf"],
      ]);
      await expect(enqueue(layout, { ...at, key: "5", body: Buffer.alloc(1_001) })).rejects.toThrow(/1001 bytes/);
      // As another program writes it, without a content type.
      const literal = dialect === "postgres" ? "decode('00ff80', 'hex')" : "x'00ff80'";
      await place.sql(`INSERT INTO app_event (message_type, message_key, topic, message_body, gmt_create, gmt_modified)
        SELECT 'plain', 'bytes', 'orders', ${literal}, gmt_create, gmt_modified FROM app_event WHERE message_key = '1'`);

      expect((await scanned(layout)).map(({ bodyBytes }) => bodyBytes)).toEqual([768, 22, 8, 17, 3]);
      const sent = await published(layout);
      expect(sent.map(({ body, contentType }) => [body, contentType])).toEqual([
        [most, "application/octet-stream"],
        ['{"json":"订单 💥"}', "application/json"],
        ["text ü\n", "text/plain; charset=utf-8"],
        [Buffer.from("{looks like JSON}"), "application/x-protobuf"],
        [Buffer.from([0, 255, 128]), "application/octet-stream"],
      ]);

      const admin = place.database.messageAdmin({ layout });
      const { messages } = await admin.list({ filter: {}, limit: 9 });
      const shown = await Promise.all(messages.map(({ id }) => admin.show({ id })));
      expect(shown.map((each) => [each?.key, each?.body, each?.contentType]).reverse()).toEqual([
        ["1", most.toString("base64"), "application/octet-stream;base64"],
        ["2", '{"json":"订单 💥"}', null],
        ["3", "text ü\n", "text/plain; charset=utf-8"],
        ["4", Buffer.from("{looks like JSON}").toString("base64"), "application/x-protobuf;base64"],
        ["bytes", "AP+A", "application/octet-stream;base64"],
      ]);
      const action = { author: "ann", reason: "test" };
      for (const message of messages) {
        const seen = { id: message.id, lockVersion: message.lockVersion ?? "0" };
        await admin.copy({ seen, original: "archive", action, change: { key: `copy of ${message.key}` } });
        expect(await admin.show(message)).toMatchObject({ archived: true });
      }
      const archived = await Promise.all(messages.map(({ id }) => admin.show({ id })));
      expect(archived.map((each) => each?.body)).toEqual(shown.map((each) => each?.body));
      await admin.close();
      const copies = new Map((await published(layout)).map(({ body, key }) => [key, Buffer.from(body)]));
      expect(copies).toEqual(new Map(sent.map(({ body, key }) => [`copy of ${key}`, Buffer.from(body)])));
    });

    test(`${type} without a content type: bytes go as bytes, JSON as JSON`, async () => {
      await makeTable({ message_body: `${type} NOT NULL`, content_type: "VARCHAR(64)" });
      const columns = { ...TYPED.columns, contentType: undefined };
      const layout = createLayout({ ...TYPED, columns, bodyType: "binary" });
      await migrate(place.database, { layout });
      const at = { topic: "orders", type: "order.created" };
      await enqueue(layout, { ...at, key: "1", body: BYTES }, { ...at, key: "2", body: [1] });
      expect((await published(layout)).map(({ body, contentType }) => [body, contentType])).toEqual([
        [BYTES, "application/octet-stream"],
        ["[1]", "application/json"],
      ]);
    });
  }

  const named: Partial<Record<string, string>> | undefined = {
    mysql: { state: `ENUM(${WORDS}) NOT NULL` },
    postgres: {
      message_type: "name_of",
      message_key: "name_of",
      topic: "name_of",
      message_body: "body_of",
      headers: "body_of",
      state: "name_of NOT NULL",
      retry_count: "count_of",
      lock_version: "count_of",
      next_retry_at: "time_of",
    },
    sqlite: undefined,
  }[dialect];
  if (named !== undefined) {
    test(`${dialect === "mysql" ? "a state in an ENUM" : "domains"}: sent, failed, listed, suspended, resumed and archived`, async () => {
      if (dialect === "postgres") {
        await place.sql("CREATE DOMAIN name_of AS varchar(200) CHECK (VALUE <> '')");
        await place.sql("CREATE DOMAIN body_of AS jsonb");
        await place.sql("CREATE DOMAIN count_of AS bigint DEFAULT 0");
        await place.sql("CREATE DOMAIN time_of AS timestamptz(3)");
      }
      await makeTable(named);
      const types = dialect === "postgres" ? ({ bodyType: "json", headersType: "json" } as const) : {};
      const layout = createLayout({ ...TYPED, ...types, states: STATE_WORDS });
      await migrate(place.database, { layout });
      const at = { topic: "orders", type: "order.created" };
      await enqueue(
        layout,
        { ...at, key: "good", body: { a: "ü" }, headers: { h: "ü" } },
        { ...at, key: "bad", body: 2 },
      );
      const refused = { status: "failed", scope: "message", retriable: false, code: "NO", reason: "no" } as const;
      const broker = memory({ outcome: ({ key }) => (key === "bad" ? refused : undefined) });
      const relay = createRelay({ database: place.database, broker, layout, logger: "silent" });
      await relay.drain();
      await relay.stop();
      expect(broker.published("orders").map(({ key, type }) => [key, type])).toEqual([["good", "order.created"]]);
      const admin = place.database.messageAdmin({ layout });
      const states = async () => {
        const { messages } = await admin.list({ filter: {}, limit: 5 });
        return Object.fromEntries(messages.map(({ key, state }) => [key, state]));
      };
      expect(await states()).toEqual({ good: "sent", bad: "failed" });
      const action = { author: "ann", reason: "test" };
      const ofBad = { filter: { key: "bad" }, limit: 5, action };
      expect(await admin.suspend(ofBad)).toMatchObject({ changed: 1 });
      expect(await states()).toEqual({ good: "sent", bad: "suspended" });
      expect(await admin.resume(ofBad)).toMatchObject({ changed: 1 });
      expect(await states()).toEqual({ good: "sent", bad: "pending" });
      const { messages } = await admin.list({ filter: { states: ["sent"] }, limit: 5 });
      expect(messages.map(({ key }) => key)).toEqual(["good"]);
      await admin.close();
      const { found } = await examine({ database: place.database, layout });
      expect(found.filter(({ id }) => id === "D102")).toEqual([]);
    });
  }

  const wrong: readonly (readonly [column: string, type: string, says: RegExp, options?: LayoutOptions])[] = {
    mysql: [
      ["message_body", "BLOB NOT NULL", /app_event\.message_body is blob: .*say bodyType: "binary"/],
      ["message_body", "CHAR(20) NOT NULL", /message_body is char\(20\)/],
      ["message_body", "TEXT NOT NULL", /is text: .*say bodyType: "text"/, { bodyType: "binary" }],
      ["message_key", "BIGINT NOT NULL", /message_key is bigint.*: columns\.messageKey has to be text/],
      ["retry_count", "FLOAT NOT NULL", /retry_count is float: columns\.retryCount has to be an integer/],
      ["next_retry_at", "VARCHAR(30)", /next_retry_at is varchar\(30\): columns\.nextRetryAt has to hold instants/],
      ["state", "VARCHAR(5) NOT NULL DEFAULT '0'", /state is varchar\(5\): the states of the layout are numbers/],
      ["next_retry_at", "TIMESTAMP NULL", /next_retry_at is timestamp: .*say clock: "server"/],
      ["message_type", "ENUM('a', 'b') NOT NULL", /message_type is enum\('a','b'\): .*change its type to varchar/],
      ["message_key", "SET('a', 'b') NOT NULL", /message_key is set\('a','b'\): .*change its type to varchar/],
      ["state", `SET(${WORDS}) NOT NULL`, /state is set.*make it varchar/, { states: STATE_WORDS }],
      ["state", "ENUM('0', '1', '5') NOT NULL", /it lacks .*: sent, it's failed, 已消费; add/, { states: STATE_WORDS }],
      ["state", `ENUM(${WORDS}) NOT NULL`, /state is enum.*the states of the layout are numbers/],
    ] as const,
    postgres: [
      ["message_body", "bytea NOT NULL", /app_event\.message_body is bytea: .*say bodyType: "binary"/],
      ["message_body", "jsonb NOT NULL", /message_body is jsonb: .*say bodyType: "json"/],
      ["headers", "jsonb", /headers is jsonb: .*say headersType: "json"/],
      ["message_key", "uuid NOT NULL", /message_key is uuid: columns\.messageKey has to be text/],
      ["message_key", "bigint NOT NULL", /message_key is bigint/],
      ["topic", "character(20) NOT NULL", /topic is character\(20\)/],
      ["message_type", "word NOT NULL", /message_type is enum word: .*change its type to varchar/],
      ["message_key", "number NOT NULL", /message_key is bigint: .*change its type to varchar/],
      ["state", "word NOT NULL", /state is enum word: .*make it varchar/, { states: STATE_WORDS }],
      ["state", "word_again NOT NULL", /state is word: .*make it varchar/, { states: STATE_WORDS }],
      ["state", "word NOT NULL", /state is enum word: the states of the layout are numbers/],
      ["id", "uuid PRIMARY KEY", /id is uuid: columns\.id has to be an integer/],
      ["gmt_create", "bigint NOT NULL", /gmt_create is bigint: columns\.gmtCreate has to hold instants/],
      ["gmt_create", "timestamp NOT NULL", /gmt_create is timestamp without time zone/, { clock: "server" }],
    ] as const,
    sqlite: [
      ["message_body", "BLOB NOT NULL", /app_event\.message_body is BLOB: .*say bodyType: "binary"/],
      ["message_body", "JSON NOT NULL", /message_body is JSON: .*say bodyType: "json"/],
      ["message_key", "STRING NOT NULL", /message_key is STRING: columns\.messageKey has to be text/],
      ["gmt_create", "INTEGER NOT NULL", /gmt_create is INTEGER: columns\.gmtCreate has to hold instants/],
    ] as const,
  }[dialect];
  for (const [column, type, says, options] of wrong) {
    if (/json/i.test(type) && name.startsWith("mariadb")) continue;
    test(`${column} ${type}${options === undefined ? "" : ` with ${JSON.stringify(options)}`} is refused by migrate, relay and doctor`, async () => {
      const fitting = createLayout({ ...TYPED });
      await makeTable({});
      await migrate(place.database, { layout: fitting });
      await place.sql("DROP TABLE app_event");
      if (dialect === "postgres") {
        await place.sql(
          `CREATE TYPE word AS ENUM (${WORDS}); CREATE DOMAIN word_again AS word; CREATE DOMAIN number AS bigint`,
        );
      }
      await makeTable({ [column]: type });
      const layout = createLayout({ ...TYPED, ...options });
      const fails = async (work: Promise<unknown>): Promise<void> => {
        await expect(work).rejects.toThrow(SchemaError);
        await expect(work).rejects.toThrow(says);
      };
      await fails(migrate(place.database, { layout }));
      const relay = createRelay({ database: place.database, broker: memory(), layout });
      await fails(relay.drain());
      await relay.stop();
      const { found } = await examine({ database: place.database, layout });
      expect(found).toContainEqual(expect.objectContaining({ id: "D102", what: expect.stringMatching(says) }));
      expect(await place.database.doctor({ layout }).tableProblems()).toEqual([expect.stringMatching(says)]);
    });
  }

  test("migrate makes nothing beside a table that does not fit, or is not there", async () => {
    const layout = createLayout({ ...TYPED });
    await expect(migrate(place.database, { layout })).rejects.toThrow(/table app_event is missing: it is your own/);
    await makeTable({ message_body: { mysql: "BLOB", postgres: "bytea", sqlite: "BLOB" }[dialect] });
    await expect(migrate(place.database, { layout })).rejects.toThrow(/bodyType/);
    await expect(place.sql("SELECT 1 FROM app_event_shard")).rejects.toThrow();
  });
});
