/** A message table of one's own in latin1: what it lacks letters for is named, and refused. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { messageTableLayout } from "../../src/databases/sql/layouts.ts";
import { createOutbox, InvalidMessageError, type NewMessage } from "../../src/index.ts";
import { describeWithService } from "../services.ts";
import { MYSQL_SERVICES, type MysqlFixture, mysqlFixture } from "./mysql-setup.ts";

const layout = messageTableLayout;
const MESSAGE = { type: "order", topic: "orders", body: "é€" } as const;

describeWithService(MYSQL_SERVICES, "latin1", ({ name }) => {
  let fixture: MysqlFixture;
  beforeAll(async () => {
    fixture = await mysqlFixture(name, layout);
    await fixture.plain.query("ALTER TABLE message_table CONVERT TO CHARACTER SET latin1");
    // Has every letter, and so is not what the error is about.
    await fixture.plain.query("ALTER TABLE message_table MODIFY message_body TEXT CHARACTER SET utf8mb4 NOT NULL");
  });
  afterAll(() => fixture?.drop());

  const refusal = (field: string, letter = "订"): unknown =>
    expect.objectContaining({ message: expect.stringContaining(`the ${field} has the letter ${letter}`) });

  for (const onDuplicate of ["throw", "ignore"] as const) {
    test.each<[field: string, given: Partial<NewMessage>, letter?: string]>([
      ["key", { key: "é订单" }],
      ["type", { type: "订单" }],
      ["topic", { topic: "€订单" }],
      ["topic", { topic: "💥", body: "💥" }, "💥"],
    ])(`enqueue, on a duplicate ${onDuplicate}: the refusal names the %s of %j`, async (field, given, letter) => {
      const outbox = createOutbox({ database: fixture.database, layout });
      const fits = { ...MESSAGE, key: "fits" };
      const enqueue = outbox.transaction((tx) =>
        outbox.enqueue(tx, [fits, { ...MESSAGE, key: "2", ...given }], { onDuplicate }),
      );
      await expect(enqueue).rejects.toThrow(InvalidMessageError);
      await expect(enqueue).rejects.toEqual(refusal(field, letter));
      expect(await fixture.plain.query("SELECT 1 FROM message_table")).toEqual([]);
    });
  }

  test("letters that the character set has are kept; a consumer's error report is written in ASCII", async () => {
    const outbox = createOutbox({ database: fixture.database, layout });
    await outbox.transaction((tx) => outbox.enqueue(tx, { ...MESSAGE, key: "é€" }));
    await fixture.plain.query(`UPDATE message_table SET state = '${layout.states.sent}'`);
    const [answer] = await outbox.transaction((tx) =>
      outbox.confirm([{ type: "order", key: "é€", error: "é 缺货" }], { tx }),
    );
    expect(answer).toMatchObject({ status: "reported" });
    const admin = fixture.database.messageAdmin({ layout });
    expect(await admin.show({ type: "order", key: "é€" })).toMatchObject({
      failReason: expect.stringContaining("\\u7F3A"),
    });
    await admin.close();
  });

  test("a confirmation, a list, a message and a change by hand name the letter", async () => {
    const outbox = createOutbox({ database: fixture.database, layout });
    await expect(outbox.transaction((tx) => outbox.confirm([{ type: "order", key: "订单" }], { tx }))).rejects.toEqual(
      refusal("key"),
    );
    const admin = fixture.database.messageAdmin({ layout });
    const action = { author: "张", reason: "夜" };
    for (const field of ["type", "key", "topic", "keyPrefix"] as const) {
      const filter = { [field]: "订单" };
      await expect(admin.list({ filter, limit: 1 })).rejects.toEqual(refusal(field));
      await expect(admin.suspend({ filter, limit: 1, action })).rejects.toEqual(refusal(field));
    }
    await expect(admin.show({ type: "order", key: "订单" })).rejects.toEqual(refusal("key"));
    // The tables of rules are in utf8mb4.
    await admin.suspendScope({ scope: "topic", value: "订单", author: "张", reason: "夜", endsInMs: null });
    expect((await admin.status()).suspensions).toMatchObject([{ value: "订单", author: "张" }]);
    await admin.close();
  });
});
