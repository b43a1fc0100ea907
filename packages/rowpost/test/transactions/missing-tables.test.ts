/**
 * A database without rowpost's tables, through every driver and ORM: the error says what makes
 * them, and holds neither the SQL nor what was to be written.
 */
import { inspect } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createInbox } from "../../src/inbox/index.ts";
import { createOutbox, SchemaError } from "../../src/index.ts";
import { createQueue } from "../../src/queue/index.ts";
import { createTestDatabase, describeWithService, type TestDatabase } from "../services.ts";
import { targetOf } from "./handles.ts";
import { HANDLES } from "./priced-handles.ts";

const SECRET = "4111-1111-1111-1111";

describeWithService(["mariadb", "mysql9", "postgres"], "missing tables", ({ name: service }) => {
  let place: TestDatabase;
  let database: Database;
  beforeAll(async () => {
    place = await createTestDatabase(service);
    const { url } = targetOf(place.url, () => {});
    database = service === "postgres" ? postgres({ url }) : mysql({ url });
  });
  afterAll(async () => {
    await database?.close();
    await place?.drop();
  });

  const identity = { type: "order.created", key: SECRET };
  const entries: readonly (readonly [string, RegExp, (tx: unknown) => Promise<unknown>])[] = [
    [
      "enqueue",
      /rowpost migrate/,
      (tx) => createOutbox({ database }).enqueue(tx, { ...identity, topic: "orders", body: SECRET }),
    ],
    [
      "confirm",
      /rowpost migrate/,
      (tx) => createOutbox({ database }).confirm([{ ...identity, error: SECRET }], { tx }),
    ],
    [
      "inbox.handle",
      /inbox\.migrate\(\)/,
      (tx) => createInbox({ database, consumer: "stock" }).handle(tx, { message: identity }, async () => {}),
    ],
    [
      "queue.append",
      /queue\.migrate\(\)/,
      (tx) => createQueue({ database }).append(tx, [{ topic: "orders", key: SECRET, body: SECRET }]),
    ],
  ];

  test("queue.append, to a topic that it knows from before", async () => {
    const queue = createQueue({ database });
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
    await queue.append({ topic: "orders", body: 1 });
    const session = await database.connect({ purpose: "tool" });
    for (const table of ["message_topic_partition", "message_topic"])
      await session.run({ name: "drop", text: `DROP TABLE ${table}`, params: [] });
    await session.close();
    const outbox = createOutbox({ database });
    for (const append of [
      () => queue.append({ topic: "orders", body: 2 }),
      () => outbox.transaction(async (tx) => await queue.append(tx, [{ topic: "orders", body: 2 }])),
    ]) {
      const thrown: unknown = await append().catch((error: unknown) => error);
      expect(thrown).toBeInstanceOf(SchemaError);
      expect(String(thrown)).toContain("queue.migrate()");
    }
    await queue.close();
  });

  for (const [name, connect, onMysql, onPostgres] of HANDLES) {
    if ((service === "postgres" ? onPostgres : onMysql) === undefined) continue;
    test(name, async () => {
      const handles = await connect(targetOf(place.url, () => {}));
      try {
        for (const [entry, help, call] of entries) {
          let thrown: unknown;
          await handles
            .transaction(async (tx) => {
              thrown = await call(tx).catch((error: unknown) => error);
              throw new Error("rolled back");
            })
            .catch(() => undefined);
          expect(thrown, entry).toBeInstanceOf(SchemaError);
          expect(String(thrown), entry).toMatch(help);
          expect(String(thrown).length, String(thrown)).toBeLessThan(400);
          const seen = inspect(thrown, { depth: 10 });
          expect(seen.includes(SECRET), `${entry}: ${seen}`).toBe(false);
        }
      } finally {
        await handles.close();
      }
    });
  }
});
