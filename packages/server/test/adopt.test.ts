/** `rowpost adopt` on tables of others, and the relay that then works on them. */
import { randomUUID } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "rowpost";
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { sqlite } from "rowpost/sqlite";
import { afterEach, describe, expect, test } from "vitest";
import { MESSAGE_TABLE, T_LOCAL_MESSAGE } from "../../rowpost/src/databases/mysql/seed-tables.ts";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { rowpost, rowpostHere, temporaryFile } from "./command.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Place {
  readonly url: string;
  readonly file: string;
  sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  adopt(table: string, ...args: readonly string[]): Promise<{ code: number; json: Record<string, never> }>;
}

/** A SQLite file, as a database. */
async function fileDatabase(): Promise<{ readonly url: string; drop(): Promise<void> }> {
  const made = await temporaryFile();
  return { url: made.url, drop: () => made.remove() };
}

/** A database of its own with this table. */
async function place(
  name: "mariadb" | "postgres" | "sqlite",
  open: (url: string) => Database,
  ...texts: readonly string[]
): Promise<Place> {
  const made = name === "sqlite" ? await fileDatabase() : await createTestDatabase(name);
  closers.push(() => made.drop());
  const database = open(made.url);
  const session = await database.connect({ purpose: "tool", clock: "server" });
  closers.push(async () => {
    await session.close();
    await database.close();
  });
  const sql = async (text: string) => (await session.run({ name: "test", text, params: [] })).rows;
  for (const text of texts) await sql(text);
  const file = join(tmpdir(), `rowpost-adopt-${randomUUID()}.json`);
  closers.push(() => rm(file, { force: true }));
  return {
    url: made.url,
    file,
    sql,
    async adopt(table, ...args) {
      const { code, stderr, stdout } = await rowpostHere(["adopt", table, "--database", made.url, "--json", ...args]);
      expect(stderr).toBe("");
      return { code, json: JSON.parse(stdout) as Record<string, never> };
    },
  };
}

/** adopt, and then the relay publishes what waits, and nothing else. */
async function relayed({ file, url }: Place): Promise<string[]> {
  const at = ["--database", url, "--layout", file];
  expect(await rowpostHere(["migrate", ...at])).toMatchObject({ code: 0, stderr: "" });
  const { code, stdout } = await rowpost(["relay", "--once", "--broker", "stdout:", ...at]);
  expect(code).toBe(0);
  return stdout
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly key: string }).key);
}

describeWithService("mariadb", "adopt", () => {
  const open = (url: string) => mysql({ url });

  test("the first seed's table: asked for its states, then relayed", async () => {
    const at = await place(
      ...(["mariadb", open, T_LOCAL_MESSAGE] as const),
      `INSERT INTO t_local_message (biz_type, biz_key, topic, message_body, status, created_by, updated_by) VALUES
        ('order', '1', 'orders', '{}', 0, 'a', 'a'), ('order', '2', 'orders', '{}', 2, 'a', 'a'), ('order', '3', 'orders', '{}', 3, 'a', 'a')`,
    );
    const asked = await at.adopt("t_local_message", "--clock", "server", "--write", at.file);
    expect(asked).toMatchObject({
      code: 2,
      json: {
        questions: [
          "say which value waits to be sent: --state pending=VALUE",
          "say what these values mean, or change their rows first: 0 (1 rows), 2 (1 rows), 3 (1 rows)",
          "if their names and the comment say so: --state pending=0 --state sent=2 --state failed=3",
        ],
      },
    });
    await expect(readFile(at.file)).rejects.toThrow("ENOENT");
    const states = ["--state", "pending=0,sending=1", "--state", "sent=2,failed=3"];
    const { code, json } = await at.adopt("t_local_message", "--clock", "server", ...states, "--write", at.file);
    expect(code).toBe(0);
    expect(json).toMatchObject({ questions: [], mustFix: [] });
    // As it says: one after the other, on a table with rows.
    expect(json["advice"]).toEqual([
      expect.stringMatching(/ ADD COLUMN lock_version BIGINT NOT NULL DEFAULT 0$/),
      expect.stringMatching(/ ALTER COLUMN lock_version SET DEFAULT \(MICROSECOND/),
    ]);
    for (const statement of json["advice"] ?? []) await at.sql(String(statement));
    expect(json["explain"]).toEqual([
      expect.stringMatching(/^scan: by idx_status_next_retry, about \d+ rows/),
      expect.stringMatching(/^claim: could not be explained: .*t_local_message_shard/),
      expect.stringMatching(/^settle: could not be explained: .*t_local_message_shard/),
      expect.stringMatching(/^look for what nobody watches: by idx_status_next_retry/),
      expect.stringMatching(/^look for what falls due: by idx_status_next_retry/),
      expect.stringMatching(/^count: by idx_status_next_retry/),
      "what could not be explained needs the tables that rowpost migrate makes: run adopt again then",
    ]);
    expect(JSON.parse(await readFile(at.file, "utf8"))).toMatchObject({
      columns: {
        id: "id",
        messageType: "biz_type",
        messageKey: "biz_key",
        topic: "topic",
        messageBody: "message_body",
        state: "status",
        retryCount: "retry_count",
        nextRetryAt: "next_retry_time",
        failReason: "fail_reason",
        gmtCreate: "gmt_create",
        gmtModified: "gmt_modified",
        lastRetryAt: "last_exec_time",
        createdBy: "created_by",
        updatedBy: "updated_by",
        messageId: null,
        lockVersion: null,
        headers: null,
      },
      states: { pending: 0, sending: 1, sent: 2, failed: 3, consumed: 4, suspended: 5 },
      clock: "server",
      fractionDigits: 0,
      failReasonLength: 512,
      limits: { type: 64, key: 128, topic: 255, bodyBytes: 65_535 },
    });
    expect(await relayed(at)).toEqual(["1"]);
    expect(await at.sql("SELECT status FROM t_local_message ORDER BY id")).toMatchObject([
      { status: 2 },
      { status: 2 },
      { status: 3 },
    ]);
  });

  test("the second seed's table, with words as states", async () => {
    const at = await place(
      ...(["mariadb", open, MESSAGE_TABLE] as const),
      `INSERT INTO message_table (gmt_create, gmt_modified, message_key, message_type, topic, message_body, state) VALUES
        (NOW(), NOW(), '1', 'order', 'orders', '{}', '待发送'), (NOW(), NOW(), '2', 'order', 'orders', '{}', '已发送')`,
    );
    const states = ["--state", "pending=待发送,sent=已发送", "--clock", "server"];
    const { code, json } = await at.adopt("message_table", ...states, "--write", at.file);
    expect(code).toBe(0);
    expect(json).toMatchObject({ questions: [], mustFix: [], advice: [] });
    expect(JSON.parse(await readFile(at.file, "utf8"))).toMatchObject({
      columns: {
        id: "id",
        messageType: "message_type",
        messageKey: "message_key",
        topic: "topic",
        state: "state",
        messageBody: "message_body",
        messageId: "message_id",
        retryCount: "retry_count",
        lockVersion: "lock_version",
        nextRetryAt: "next_retry_at",
        lastRetryAt: "last_retry_time",
        failReason: "fail_reason",
        gmtCreate: "gmt_create",
        gmtModified: "gmt_modified",
        headers: null,
        orderingKey: null,
        createdBy: null,
      },
      states: { pending: "待发送", sending: "发送中", sent: "已发送", failed: "发送失败", consumed: "已消费" },
      clock: "server",
      fractionDigits: 0,
      messageIdLength: 128,
      limits: { type: 64, key: 128, topic: 64 },
    });
    expect(await relayed(at)).toEqual(["1"]);
    const again = await at.adopt("message_table", ...states);
    expect(again.json["explain"]).toEqual([
      expect.stringMatching(/^scan: by idx_state_retry/),
      expect.stringMatching(/^claim: (by PRIMARY|nothing can match now)/),
      expect.stringMatching(/^settle: (by PRIMARY|nothing can match now)/),
      expect.stringMatching(/^look for what nobody watches: by idx_state_retry/),
      expect.stringMatching(/^look for what falls due: by idx_state_retry/),
      expect.stringMatching(/^count: by idx_state_retry/),
    ]);
  });

  test("without an index for the scan: what reads the whole table, and what mends it", async () => {
    const bare = T_LOCAL_MESSAGE.replace(/KEY `idx_status_next_retry`.*\n/, "");
    const at = await place("mariadb", open, bare);
    const states = ["--state", "pending=0,sending=1,sent=2,failed=3", "--clock", "server"];
    const { json } = await at.adopt("t_local_message", ...states);
    const explain = json["explain"] as unknown as readonly string[];
    expect(explain[0]).toMatch(/^scan: reads the whole table, about \d+ rows/);
    const [create = ""] =
      /CREATE INDEX.*?(?= \(its plans)/.exec(explain.find((line) => line.startsWith("mended by")) ?? "") ?? [];
    await at.sql(create);
    const { json: mended } = await at.adopt("t_local_message", ...states);
    expect((mended["explain"] as unknown as readonly string[])[0]).toMatch(/^scan: by idx_t_local_message_scan/);
  });

  test("Chinese words as states, an INT id, local time, no unique key and no index", async () => {
    const at = await place(
      ...(["mariadb", open] as const),
      `CREATE TABLE xx_msg (f_id INT AUTO_INCREMENT PRIMARY KEY, f_kind VARCHAR(32) NOT NULL COMMENT '消息类型',
        f_no VARCHAR(64) NOT NULL COMMENT '业务单号，幂等用', f_channel VARCHAR(64) NOT NULL, f_content VARCHAR(2000) NOT NULL COMMENT '消息内容',
        f_zt VARCHAR(16) NOT NULL COMMENT '状态', f_tries INT NOT NULL DEFAULT 0, f_next_time DATETIME NULL COMMENT '下次发送时间',
        f_error VARCHAR(200) NOT NULL DEFAULT '', f_ctime DATETIME NOT NULL COMMENT '创建时间', f_mtime DATETIME NOT NULL) DEFAULT CHARSET=utf8mb4`,
      // Eight hours ahead, as a program in Shanghai writes it beside a server in UTC.
      `INSERT INTO xx_msg (f_kind, f_no, f_channel, f_content, f_zt, f_ctime, f_mtime) VALUES
        ('pay', '7', 'pays', '{}', '待发送', UTC_TIMESTAMP(), UTC_TIMESTAMP()), ('pay', '8', 'pays', '{}', '成功', UTC_TIMESTAMP(), UTC_TIMESTAMP())`,
    );
    const states = ["--state", "pending=待发送", "--state", "sent=成功"];
    const { code, json } = await at.adopt("xx_msg", "--clock", "server", ...states);
    expect(code).toBe(1);
    expect(json).toMatchObject({
      mustFix: [
        expect.stringContaining("CREATE UNIQUE INDEX"),
        expect.stringContaining("f_error must take NULL: ALTER TABLE `xx_msg` MODIFY `f_error` varchar(200) NULL"),
      ],
      advice: [
        expect.stringMatching(/^CREATE INDEX .*\(`f_zt`, `f_next_time`\)/),
        expect.any(String),
        expect.any(String),
      ],
      notes: expect.arrayContaining([expect.stringContaining("2,147,483,647")]),
      layout: {
        states: {
          pending: "待发送",
          sending: "发送中",
          sent: "成功",
          failed: "发送失败",
          consumed: "已消费",
          suspended: "已挂起",
        },
      },
    });
  });
});

describeWithService("postgres", "adopt", () => {
  const open = (url: string) => postgres({ url });

  test("a table with words as states, relayed once it has been mended", async () => {
    const at = await place(
      ...(["postgres", open] as const),
      `CREATE TABLE app_event (event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind varchar(40) NOT NULL, ref varchar(80) NOT NULL,
        channel varchar(80) NOT NULL, payload text NOT NULL, status varchar(20) NOT NULL DEFAULT 'new', tries int NOT NULL DEFAULT 0,
        next_try timestamptz, error text, receipt varchar(100), version bigint NOT NULL DEFAULT 0,
        created timestamptz NOT NULL DEFAULT now(), changed timestamptz NOT NULL DEFAULT now())`,
      "CREATE INDEX app_event_status ON app_event (status, next_try)",
      "INSERT INTO app_event (kind, ref, channel, payload, status) VALUES ('joined', '42', 'users', '{}', 'new'), ('joined', '41', 'users', '{}', 'done')",
    );
    expect(await at.adopt("app_event")).toMatchObject({ code: 2 });
    const states = ["--state", "pending=new", "--state", "sent=done"];
    const first = await at.adopt("app_event", ...states);
    expect(first).toMatchObject({ code: 1, json: { mustFix: [expect.stringContaining("CREATE UNIQUE INDEX")] } });
    await at.sql(/CREATE UNIQUE INDEX.*/.exec(String(first.json["mustFix"]?.[0]))?.[0] ?? "");
    const { code, json } = await at.adopt("app_event", ...states, "--write", at.file);
    expect(code).toBe(0);
    expect(json).toMatchObject({
      layout: {
        clock: "utc",
        columns: { id: "event_id", messageId: "receipt", lockVersion: "version", topic: "channel" },
      },
    });
    const early = json["explain"] as unknown as readonly string[];
    expect([...early.slice(0, 3), early.at(-1)]).toEqual([
      expect.stringMatching(/^scan: (by app_event_status|reads the whole table)/),
      expect.stringMatching(/^claim: could not be explained: .*app_event_shard/),
      expect.stringMatching(/^settle: could not be explained: .*app_event_shard/),
      "what could not be explained needs the tables that rowpost migrate makes: run adopt again then",
    ]);
    expect(await relayed(at)).toEqual(["42"]);
    // So many that an index is worth it, most of them finished.
    await at.sql(`INSERT INTO app_event (kind, ref, channel, payload, status)
      SELECT 'joined', 'r' || n, 'users', '{}', 'done' FROM generate_series(1, 20000) AS n`);
    await at.sql("ANALYZE app_event");
    const big = (await at.adopt("app_event", ...states)).json["explain"] as unknown as readonly string[];
    const named = big.map((line) => line.replace(/, about \d+ rows/g, ""));
    expect(named.slice(0, 3)).toEqual([
      expect.stringMatching(/^scan: by app_event_/),
      expect.stringMatching(/^claim: by app_event_(pkey|status)/),
      expect.stringMatching(/^settle: by app_event_pkey/),
    ]);
    await at.sql("DROP INDEX app_event_status");
    await at.sql("ANALYZE app_event");
    const { json: without } = await at.adopt("app_event", ...states);
    expect(without["explain"]).toContainEqual(
      expect.stringMatching(/^look for what falls due: reads the whole table$/),
    );
    expect(without["explain"]).toContainEqual(expect.stringMatching(/^mended by: CREATE INDEX CONCURRENTLY/));
    expect(await at.sql("SELECT count(*)::int AS n FROM pg_indexes WHERE tablename = 'app_event'")).toEqual([{ n: 2 }]);
  });

  test("jsonb, bytea and times without a zone: the layout says how they are stored; what cannot be stored is told", async () => {
    const table = (body: string, key = "varchar(80)"): string =>
      `CREATE TABLE app_event (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, message_type varchar(40) NOT NULL, message_key ${key} NOT NULL,
        topic varchar(80) NOT NULL, payload ${body} NOT NULL, headers jsonb, state int NOT NULL DEFAULT 0, retry_count int NOT NULL DEFAULT 0,
        next_retry_at timestamp, fail_reason text, gmt_create timestamp NOT NULL DEFAULT (now() AT TIME ZONE 'UTC'), gmt_modified timestamp NOT NULL DEFAULT (now() AT TIME ZONE 'UTC'),
        UNIQUE (message_type, message_key))`;
    const said = ["--state", "pending=0,sent=2", "--clock"];
    const at = await place(
      ...(["postgres", open, table("jsonb")] as const),
      `INSERT INTO app_event (message_type, message_key, topic, payload, headers) VALUES ('joined', '42', 'users', '{"a": 1}', '{"b": "c"}')`,
    );
    const { code, json } = await at.adopt("app_event", ...said, "utc", "--write", at.file);
    expect([code, json]).toMatchObject([0, { layout: { bodyType: "json", headersType: "json", clock: "utc" } }]);
    expect(await relayed(at)).toEqual(["42"]);
    expect(await at.adopt("app_event", ...said, "server")).toMatchObject({
      code: 1,
      json: { mustFix: expect.arrayContaining([expect.stringMatching(/gmt_create is timestamp.*timestamptz/)]) },
    });

    await at.sql("DROP TABLE app_event");
    await at.sql(table("bytea"));
    expect((await at.adopt("app_event", ...said, "utc")).json).toMatchObject({ layout: { bodyType: "binary" } });
    await at.sql("DROP TABLE app_event");
    await at.sql(table("text", "uuid"));
    const asked = await at.adopt("app_event", ...said, "utc");
    expect(asked).toMatchObject({
      code: 2,
      json: { questions: [expect.stringContaining("which column is messageKey?")] },
    });
    expect(await at.adopt("app_event", ...said, "utc", "--column", "messageKey=message_key")).toMatchObject({
      code: 1,
      json: { mustFix: [expect.stringMatching(/message_key is uuid: columns.messageKey has to be text/)] },
    });
  });

  test("an enum is refused with the way out; a domain counts as its base type", async () => {
    const at = await place(
      ...(["postgres", open, "CREATE TYPE word AS ENUM ('new', 'done'); CREATE DOMAIN code AS varchar(80)"] as const),
      `CREATE TABLE app_event (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, message_type code NOT NULL, message_key code NOT NULL,
        topic code NOT NULL, payload text NOT NULL, state word NOT NULL DEFAULT 'new', retry_count int NOT NULL DEFAULT 0,
        next_retry_at timestamptz, fail_reason text, gmt_create timestamptz NOT NULL DEFAULT now(), gmt_modified timestamptz NOT NULL DEFAULT now(),
        UNIQUE (message_type, message_key))`,
    );
    expect(await at.adopt("app_event", "--state", "pending=new,sent=done")).toMatchObject({
      code: 1,
      json: {
        layout: { columns: { messageKey: "message_key", state: "state" }, limits: { key: 80 } },
        mustFix: [expect.stringMatching(/state is enum word: .* make it varchar/)],
      },
    });
  });

  test("a version that begins anywhere, as advised", async () => {
    const at = await place(
      ...(["postgres", open] as const),
      `CREATE TABLE app_event (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, message_type varchar(40) NOT NULL, message_key varchar(80) NOT NULL,
        topic varchar(80) NOT NULL, message_body text NOT NULL, state int NOT NULL DEFAULT 0, retry_count int NOT NULL DEFAULT 0,
        next_retry_at timestamptz, fail_reason text, gmt_create timestamptz NOT NULL DEFAULT now(), gmt_modified timestamptz NOT NULL DEFAULT now(),
        UNIQUE (message_type, message_key))`,
    );
    const { json } = await at.adopt("app_event", "--state", "pending=0,sent=2");
    const advice = json["advice"] as unknown as readonly string[];
    for (const statement of advice) if (statement.includes("lock_version")) await at.sql(statement);
    await at.sql(`INSERT INTO app_event (message_type, message_key, topic, message_body)
      SELECT 't', 'k' || n, 'users', '{}' FROM generate_series(1, 100) AS n`);
    const [row] = await at.sql(`SELECT count(DISTINCT lock_version)::int AS versions,
      count(*) FILTER (WHERE lock_version BETWEEN 0 AND 999999)::int AS fitting FROM app_event`);
    expect(row).toEqual({ versions: expect.toSatisfy((versions) => Number(versions) > 50), fitting: 100 });
  });

  test("nothing that is not there", async () => {
    const at = await place("postgres", open, "CREATE TABLE other (id int)");
    const run = (...args: readonly string[]) => rowpostHere(["adopt", ...args, "--database", at.url]);
    expect(await run("nothing")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("there is no table nothing"),
    });
    expect(await run("other", "--column", "topic=x")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no such column"),
    });
    expect(await run("other", "--column", "tpic=x")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("NAME=COLUMN"),
    });
  });
});

describe("adopt on sqlite", () => {
  const open = (url: string) => sqlite({ file: url.replace("sqlite:", "") });

  test("a table as other programs make it: read, mended, relayed", async () => {
    const at = await place(
      "sqlite",
      open,
      `CREATE TABLE outbox_event (event_id INTEGER PRIMARY KEY, kind VARCHAR(40) NOT NULL, ref VARCHAR(80) NOT NULL, channel VARCHAR(80) NOT NULL,
        payload TEXT NOT NULL, status INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, next_try DATETIME, error TEXT,
        version BIGINT NOT NULL DEFAULT 0, created DATETIME NOT NULL DEFAULT (datetime('now')), changed DATETIME NOT NULL DEFAULT (datetime('now')))`,
      // Neither says that a pair is there once.
      "CREATE UNIQUE INDEX of_the_new ON outbox_event (kind, ref) WHERE version = 0",
      "CREATE INDEX of_the_pair ON outbox_event (kind, ref)",
      "INSERT INTO outbox_event (kind, ref, channel, payload, status) VALUES ('joined', '42', 'users', '{}', 0), ('joined', '41', 'users', '{}', 2)",
    );
    const states = ["--state", "pending=0,sent=2", "--clock", "utc"];
    const first = await at.adopt("outbox_event", ...states);
    expect(first).toMatchObject({
      code: 1,
      json: { mustFix: [expect.stringContaining("CREATE UNIQUE INDEX")] },
    });
    await at.sql(/CREATE UNIQUE INDEX.*/.exec(String(first.json["mustFix"]?.[0]))?.[0] ?? "");
    const { json } = await at.adopt("outbox_event", ...states);
    const explain = json["explain"] as unknown as readonly string[];
    expect(explain[0]).toBe("scan: reads the whole table");
    expect(json["advice"]?.[0]).toBe('CREATE INDEX "idx_outbox_event_scan" ON "outbox_event" ("status", "next_try")');
    await at.sql(String(json["advice"]?.[0]));
    const mended = await at.adopt("outbox_event", ...states, "--write", at.file);
    expect([mended.code, (mended.json["explain"] as unknown as readonly string[])[0]]).toEqual([
      ...[0, "scan: by idx_outbox_event_scan"],
    ]);
    expect(mended.json).toMatchObject({
      layout: {
        columns: { id: "event_id", messageType: "kind", messageKey: "ref", topic: "channel", messageBody: "payload" },
        limits: { type: 40, key: 80, topic: 80 },
        states: { pending: 0, sent: 2 },
        clock: "utc",
      },
    });
    expect(await relayed(at)).toEqual(["42"]);
  });

  test("nothing that is not there", async () => {
    const at = await place("sqlite", open, "CREATE TABLE other (id INTEGER PRIMARY KEY)");
    const { code, stderr } = await rowpostHere(["adopt", "nothing", "--database", at.url]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("there is no table nothing")]);
  });
});
