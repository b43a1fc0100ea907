/** The tables of a month: made by several at once, and by one that dies in between. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { topics as mysqlTopics } from "../../src/databases/mysql/queue/topics.ts";
import { topics as postgresTopics } from "../../src/databases/postgres/queue/topics.ts";
import { topics as sqliteTopics } from "../../src/databases/sqlite/queue/topics.ts";
import { describeOnEach, type OpenQueue, openQueue } from "./places.ts";

const STATEMENTS = { mysql: mysqlTopics, postgres: postgresTopics, sqlite: sqliteTopics };

describeOnEach("the tables of a month", (make) => {
  let opened: OpenQueue;

  beforeEach(async () => {
    opened = await openQueue(make, { partitions: 1 });
  });
  afterEach(() => opened.close());

  it("are there with the table of the messages, wherever their maker is killed", async () => {
    const { database, place } = opened;
    const store = database.queue.store();
    const statements = STATEMENTS[place.address.kind];
    // As many months as there are places to die at.
    const months = statements.createMonth("orders", 202501).map((_, index) => 202501 + index);
    for (const [index, month] of months.entries()) {
      for (const text of statements.createMonth("orders", month).slice(0, index + 1)) await place.query(text);
    }
    const there = (await store.topics.months("orders")).filter((month) => months.includes(month));
    for (const month of there) {
      expect(await place.query(`SELECT message_id FROM orders_message_info_consumption_${month}`)).toEqual([]);
    }
    await store.topics.makeMonths("orders", months);
    expect(await store.topics.months("orders")).toEqual(expect.arrayContaining(months));
    await store.close();
  });

  it("are made by several at once", async () => {
    const months = [202601, 202602, 202603, 202604];
    const stores = Array.from({ length: 4 }, () => opened.place.open().queue.store());
    await Promise.all(stores.map((store) => store.topics.makeMonths("orders", months)));
    expect(await stores[0]?.topics.months("orders")).toEqual(expect.arrayContaining(months));
    for (const store of stores) await store.close();
  });
});
