/**
 * Relays that publish into a queue and die: each message is in the queue once, and its row names
 * it, wherever the relay died.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { migrate } from "../../src/databases/sql/migrate.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createQueue } from "../../src/queue/index.ts";
import type { FaultPoint } from "../../src/relay/options.ts";
import { appendedTo } from "./appended.ts";
import { describeOnEach, type QueuePlace } from "./places.ts";

const PROGRAM = fileURLToPath(new URL("./relayed.process.mjs", import.meta.url));
const MESSAGES = 60;

describeOnEach("relays into a queue that die", (make) => {
  let places: QueuePlace[];
  const children: ChildProcess[] = [];

  beforeEach(() => {
    places = [];
  });
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.exitCode === null) child.kill("SIGKILL");
    for (const place of places) await place.drop();
  });

  async function makePlace(): Promise<QueuePlace> {
    const place = await make();
    places.push(place);
    return place;
  }

  /** A queue, and an outbox with messages of five ordering keys and without one. */
  async function prepare(outbox: QueuePlace, apart: QueuePlace): Promise<void> {
    const queue = createQueue({ database: apart.open() });
    await queue.migrate();
    await queue.createTopic({ topic: "orders", partitions: 2 });
    await queue.close();
    const database = outbox.open();
    await migrate(database, { layout: database.defaultLayout });
    const box = createOutbox({ database });
    await box.transaction(async (tx) => {
      for (let index = 0; index < MESSAGES; index += 1) {
        const orderingKey = index % 6 === 5 ? undefined : `key ${index % 6}`;
        await box.enqueue(tx, {
          type: "order.created",
          key: String(index),
          topic: "orders",
          body: { index },
          ...(orderingKey === undefined ? {} : { orderingKey }),
        });
      }
    });
  }

  async function exitOf(task: object): Promise<number | string | null> {
    const child = fork(PROGRAM, [JSON.stringify(task)], { execArgv: [] });
    children.push(child);
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    return signal ?? code;
  }

  /** Each once, by its own id, and those of one key in their order. */
  async function expectEachOnce(outbox: QueuePlace, apart: QueuePlace): Promise<void> {
    const rows = await outbox.query("SELECT message_key, message_id, state FROM local_message ORDER BY id");
    const appended = await appendedTo(apart, "orders");
    expect(rows.every(({ state }) => Number(state) === 2)).toBe(true);
    expect(appended.map(({ key }) => Number(key)).sort((left, right) => left - right)).toEqual(
      Array.from({ length: MESSAGES }, (_, index) => index),
    );
    const idOf = new Map(appended.map(({ key, id }) => [key, id]));
    for (const row of rows) expect(String(row["message_id"])).toBe(idOf.get(String(row["message_key"])));
    for (const name of new Set(appended.flatMap(({ orderingKey }) => orderingKey ?? []))) {
      const keys = appended.filter(({ orderingKey }) => orderingKey === name).map(({ key }) => Number(key));
      expect(keys).toEqual(keys.toSorted((left, right) => left - right));
    }
  }

  const within: FaultPoint[] = ["beforePublish", "beforeAppend", "appended", "beforeCommit", "published"];

  it.each(within)("appends and settles together: killed at '%s'", { timeout: 120_000 }, async (point) => {
    const place = await makePlace();
    await prepare(place, place);
    expect(await exitOf({ outbox: place.address, point, hit: 2 })).toBe("SIGKILL");
    expect(await exitOf({ outbox: place.address })).toBe(0);
    await expectEachOnce(place, place);
    expect(await place.query("SELECT source_id FROM message_source")).toEqual([]);
  });

  it("recognizes what it has appended to another database: killed before its rows said so", {
    timeout: 120_000,
  }, async () => {
    const [outbox, apart] = [await makePlace(), await makePlace()];
    await prepare(outbox, apart);
    const task = { outbox: outbox.address, queue: apart.address };
    expect(await exitOf({ ...task, point: "published", hit: 2 })).toBe("SIGKILL");
    // There is what only the source ids can tell.
    const before = await appendedTo(apart, "orders");
    const sent = await outbox.query("SELECT id FROM local_message WHERE state = 2");
    expect(before.length).toBeGreaterThan(sent.length);
    expect(await exitOf(task)).toBe(0);
    await expectEachOnce(outbox, apart);
  });
});
