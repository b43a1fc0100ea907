/** A search reads index ranges in their order, and sorts nothing, also without statistics. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import * as mysqlStatements from "../../src/databases/mysql/queue/statements.ts";
import * as postgresStatements from "../../src/databases/postgres/queue/statements.ts";
import * as sqliteStatements from "../../src/databases/sqlite/queue/statements.ts";
import { createQueue } from "../../src/queue/index.ts";
import { faults } from "../databases/plans.ts";
import { oldId, writeOld } from "./months.ts";
import { describeOnEach, type QueuePlace } from "./places.ts";

const STATEMENTS = { mysql: mysqlStatements, postgres: postgresStatements, sqlite: sqliteStatements };
const MONTH = 202601;

describeOnEach("the plans of a search", (make) => {
  let place: QueuePlace;
  let database: Database;

  beforeEach(async () => {
    place = await make();
    database = place.open();
    const queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 3 });
    await queue.close();
    const store = database.queue.store();
    await store.topics.makeMonths("orders", [MONTH]);
    await store.close();
    // One key has a tenth of them, as an order that is changed all day.
    const messages = Array.from({ length: 5_000 }, (_, n) => ({
      key: n % 10 === 0 ? "hot" : `k${n}`,
      partition: n % 3,
    }));
    await writeOld(place, "orders", MONTH, messages);
  });
  afterEach(async () => {
    await place.drop();
  });

  it("reads an index range in its order, whatever the server knows of the table", async () => {
    const { search, rewind } = STATEMENTS[place.address.kind];
    const session = await database.connect({ purpose: "relay" });
    const range = { topic: "orders", month: MONTH, fromId: "0", toId: oldId(MONTH, 4_999, 63), limit: 50 };
    const id = oldId(MONTH, 3_000);
    const statements = [
      search.searchKey({ ...range, key: "k7" }),
      search.searchKey({ ...range, key: "hot" }),
      search.walk({ ...range, partitions: 3 }),
      search.readMessage({ topic: "orders", month: MONTH, id }),
      rewind.placesBefore("orders", { month: MONTH, partition: 0, id, places: 1_000 }),
    ];
    for (const analyzed of [false, true]) {
      if (analyzed) {
        const words = { mysql: "ANALYZE TABLE", postgres: "ANALYZE", sqlite: "ANALYZE" }[place.address.kind];
        await place.query(`${words} orders_message_info_${MONTH}`);
      }
      for (const statement of statements) {
        expect(await faults(place.address.kind, session, statement), statement.name).toEqual([]);
        if (place.address.kind !== "postgres") continue;
        const { rows } = await session.run({ ...statement, name: "explain", text: `EXPLAIN ${statement.text}` });
        const plan = rows.map((row) => String(row["QUERY PLAN"])).join("\n");
        expect(plan, statement.name).not.toMatch(/Sort|Seq Scan|Bitmap/);
      }
    }
    await session.close();
  });
});
