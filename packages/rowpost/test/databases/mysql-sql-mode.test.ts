/**
 * What the sql_mode of a user's session could change in what is stored (rule: exact-text): a value
 * that does not fit is refused where the server would cut it, and no other mode changes anything.
 */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import { ConfigurationError, InvalidMessageError } from "../../src/index.ts";
import type { EncodedMessage } from "../../src/outbox/message-writer.ts";
import type { Executor } from "../../src/transactions/executor.ts";
import { describeWithService } from "../services.ts";
import { MYSQL_SERVICES, type MysqlFixture, message, mysqlFixture } from "./mysql-setup.ts";

const EVERY_SERVER = [
  ...["ANSI", "ANSI_QUOTES", "PIPES_AS_CONCAT", "HIGH_NOT_PRECEDENCE", "IGNORE_SPACE", "REAL_AS_FLOAT"],
  ...["NO_UNSIGNED_SUBTRACTION", "PAD_CHAR_TO_FULL_LENGTH", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "TRADITIONAL"],
];
const MODES = {
  mariadb: [...EVERY_SERVER, "TIME_ROUND_FRACTIONAL", "ORACLE", "MSSQL", "DB2", "SIMULTANEOUS_ASSIGNMENT"],
  mysql8: [...EVERY_SERVER, "TIME_TRUNCATE_FRACTIONAL"],
  mysql9: [...EVERY_SERVER, "TIME_TRUNCATE_FRACTIONAL"],
};

describeWithService(MYSQL_SERVICES, "sql_mode", (service) => {
  let fixture: MysqlFixture;
  beforeAll(async () => {
    fixture = await mysqlFixture(service.name, defaultLayout);
    await fixture.plain.query("ALTER TABLE local_message MODIFY topic VARCHAR(20) CHARACTER SET latin1 NOT NULL");
    await fixture.plain.query("ALTER TABLE local_message MODIFY headers VARCHAR(60) NULL");
  });
  afterAll(() => fixture?.drop());
  afterEach(async () => {
    await fixture.plain.query("DELETE FROM local_message");
  });

  const stored = () => fixture.plain.query("SELECT topic, headers, message_body AS body FROM local_message");

  async function inSession(
    mode: string,
    messages: readonly EncodedMessage[],
    change = (tx: Executor): Executor => tx,
  ): Promise<unknown> {
    const connection = await fixture.connect();
    await connection.query(`SET SESSION sql_mode = '${mode}'`);
    await connection.query("START TRANSACTION");
    const tx = change(fixture.database.executor(connection.handle));
    const writer = fixture.database.messageWriter({ layout: fixture.layout });
    const answer = await writer.insert(tx, messages, { duplicates: "throw" }).catch((error: unknown) => error);
    await connection.query("COMMIT");
    return answer;
  }

  const unfit: readonly [string, Partial<EncodedMessage>][] = [
    ["the topic is longer than the 20 characters", { topic: "a-topic-of-more-letters" }],
    ["latin1, which lacks letters of the topic", { topic: "订单" }],
    ["the headers is longer than the 60 characters", { headers: JSON.stringify({ source: "x".repeat(80) }) }],
  ];
  test.each(unfit)("lenient: %s, and is refused", async (text, change) => {
    const answer = await inSession("", [message({ key: "fits" }), message({ key: "unfit", ...change })]);
    expect(answer).toBeInstanceOf(InvalidMessageError);
    expect(answer).toMatchObject({ message: expect.stringContaining(text) });
    expect(await stored()).toEqual([]);
  });

  test("lenient: what fits is stored as it is, in calls of several sizes", async () => {
    const body = "it's 张𠮷 \\ \" ?";
    const messages = Array.from({ length: 9 }, (_, n) => message({ key: `k-${n}`, body, headers: '{"a":"𠮷"}' }));
    expect(await inSession("", messages)).toEqual(messages.map(() => "enqueued"));
    expect(await inSession("", [message({ key: "one", body })])).toEqual(["enqueued"]);
    expect(new Set((await stored()).map((row) => row["body"]))).toEqual(new Set([body]));
  });

  test("lenient: the columns of one database say nothing of those of another", async () => {
    const other = `${new URL(fixture.url).pathname.slice(1)}_other`;
    await fixture.plain.query(`CREATE DATABASE ${other} CHARACTER SET utf8mb4`);
    try {
      await fixture.plain.query(`CREATE TABLE ${other}.local_message LIKE local_message`);
      await fixture.plain.query(`ALTER TABLE ${other}.local_message MODIFY topic VARCHAR(5) NOT NULL`);
      const connection = await fixture.connect();
      await connection.query("SET SESSION sql_mode = ''");
      const tx = fixture.database.executor(connection.handle);
      const writer = fixture.database.messageWriter({ layout: fixture.layout });
      await connection.query("START TRANSACTION");
      const insert = (key: string): Promise<unknown> =>
        writer
          .insert(tx, [message({ key, topic: "orders" })], { duplicates: "throw" })
          .catch((error: unknown) => error);
      expect(await insert("first")).toEqual(["enqueued"]);
      await connection.query(`USE ${other}`);
      expect(await insert("second")).toBeInstanceOf(InvalidMessageError);
      await connection.query("COMMIT");
      expect(await fixture.plain.query(`SELECT topic FROM ${other}.local_message`)).toEqual([]);
    } finally {
      await fixture.plain.query(`DROP DATABASE ${other}`);
    }
  });

  test("guard removed: in a lenient session the topic is cut, without a word", async () => {
    const answer = await inSession("", [message({ topic: "a-topic-of-more-letters" })], (tx) => ({
      ...tx,
      run: ({ name, params, text }) => tx.run({ name, params, text: text.replace(/WHEN NOT \(.*EXP\(996\)/, "") }),
    }));
    expect(answer).toEqual(["enqueued"]);
    expect(await stored()).toMatchObject([{ topic: "a-topic-of-more-lett" }]);
  });

  test.each(MODES[service.name])("%s changes nothing", async (mode) => {
    const bodies = ['it\'s "张𠮷" || \\ ? `a`', "", "  "];
    const messages = bodies.map((body, n) => message({ key: `k-${n}`, body, contentType: "text/plain" }));
    for (const one of [
      messages,
      messages.map((each) => message({ ...each, key: `${each.key}-late`, delayMs: 60_000 })),
    ]) {
      expect(await inSession(`${mode},STRICT_TRANS_TABLES`, one)).toEqual(one.map(() => "enqueued"));
    }
    expect((await stored()).map((row) => row["body"])).toEqual([...bodies, ...bodies]);
  });

  // MySQL has no such mode.
  if (service.name === "mariadb") {
    test("EMPTY_STRING_IS_NULL is refused", async () => {
      const answer = await inSession("EMPTY_STRING_IS_NULL,STRICT_TRANS_TABLES", [message({ body: "" })]);
      expect(answer).toBeInstanceOf(ConfigurationError);
      expect(await stored()).toEqual([]);
    });
  }
});
