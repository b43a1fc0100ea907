/** `rowpost adopt` on tables of others, and the relay that then works on them. */
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "rowpost";
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { afterEach, expect, test } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { rowpost, rowpostHere } from "./command.ts";

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

/** A database of its own with this table. */
async function place(
  name: "mariadb" | "postgres",
  open: (url: string) => Database,
  ...texts: readonly string[]
): Promise<Place> {
  const made = await createTestDatabase(name);
  closers.push(() => made.drop());
  const database = open(made.url);
  const session = await database.connect({ purpose: "tool", clock: "server" });
  closers.push(async () => {
    await session.close();
    await database.close();
  });
  const sql = async (text: string) => (await session.run({ name: "test", text, params: [] })).rows;
  for (const text of texts) await sql(text);
  const file = join(tmpdir(), `${made.name}.json`);
  closers.push(() => rm(file, { force: true }));
  return {
    ...{ url: made.url, file, sql },
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

const T_LOCAL_MESSAGE = `CREATE TABLE t_local_message (
  id bigint NOT NULL AUTO_INCREMENT COMMENT '主键ID',
  biz_type varchar(64) NOT NULL COMMENT '业务类型（区分不同业务，例如order_create、stock_lock等）',
  biz_key varchar(128) NOT NULL COMMENT '业务幂等键（关联具体业务记录，例如订单号）',
  topic varchar(255) NOT NULL COMMENT 'RocketMQ Topic',
  message_body text NOT NULL COMMENT '消息内容（JSON格式）',
  status tinyint NOT NULL COMMENT '消息状态：0-待发送，1-发送中，2-已发送，3-发送失败',
  retry_count int NOT NULL DEFAULT 0 COMMENT '消息已重试次数',
  next_retry_time datetime DEFAULT NULL COMMENT '下一次重试时间（可实现延时发送）',
  last_exec_time datetime DEFAULT NULL COMMENT '最后一次发送时间',
  fail_reason varchar(512) DEFAULT NULL COMMENT '最后一次失败原因',
  created_by varchar(64) NOT NULL COMMENT '创建人或系统代码标识',
  updated_by varchar(64) NOT NULL COMMENT '修改人或系统代码标识',
  gmt_create datetime NOT NULL DEFAULT CURRENT_TIMESTAMP COMMENT '创建时间',
  gmt_modified datetime NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP COMMENT '修改时间',
  PRIMARY KEY (id), UNIQUE KEY uk_biz_type_key (biz_type, biz_key),
  KEY idx_status_next_retry (status, next_retry_time), KEY idx_topic (topic)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4`;

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
    expect(json).toMatchObject({ questions: [], mustFix: [], advice: [expect.stringContaining("lock_version")] });
    expect(json).toMatchObject({ explain: expect.arrayContaining([expect.stringContaining("idx_status_next_retry")]) });
    expect(JSON.parse(await readFile(at.file, "utf8"))).toMatchObject({
      columns: {
        ...{ id: "id", messageType: "biz_type", messageKey: "biz_key", topic: "topic", messageBody: "message_body" },
        ...{ state: "status", retryCount: "retry_count", nextRetryAt: "next_retry_time", failReason: "fail_reason" },
        ...{ gmtCreate: "gmt_create", gmtModified: "gmt_modified", lastRetryAt: "last_exec_time" },
        ...{ createdBy: "created_by", updatedBy: "updated_by", messageId: null, lockVersion: null, headers: null },
      },
      states: { pending: 0, sending: 1, sent: 2, failed: 3, consumed: 4, suspended: 5 },
      ...{ clock: "server", fractionDigits: 0, failReasonLength: 512 },
      limits: { type: 64, key: 128, topic: 255, bodyBytes: 65_535 },
    });
    expect(await relayed(at)).toEqual(["1"]);
    expect(await at.sql("SELECT status FROM t_local_message ORDER BY id")).toMatchObject([
      { status: 2 },
      { status: 2 },
      { status: 3 },
    ]);
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
      advice: [expect.stringMatching(/^CREATE INDEX .*\(`f_zt`, `f_next_time`\)/), expect.any(String)],
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
    expect(await relayed(at)).toEqual(["42"]);
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
