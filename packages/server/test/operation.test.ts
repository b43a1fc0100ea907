/** `rowpost operation`: what the console has started, looked at and moved from a shell. */
import { type BulkKind, type BulkStore, createOutbox, type Database, migrate } from "rowpost";
import { mariadb } from "rowpost/mariadb";
import { postgres } from "rowpost/postgres";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { rowpostHere, temporaryFile } from "./command.ts";

interface Place {
  readonly database: Database;
  readonly url: string;
  drop(): Promise<unknown>;
}

const WORKER = { owner: "worker", leaseMs: 10_000 };
const action = { author: "ann", reason: "the broker is back", via: "console" } as const;

function cases(create: () => Promise<Place>): void {
  let place: Place;
  let bulk: BulkStore;

  beforeEach(async () => {
    place = await create();
    const { database } = place;
    await migrate(database, { layout: database.defaultLayout });
    bulk = database.bulk({ layout: database.defaultLayout });
    const messages = Array.from({ length: 600 }, (_, index) => ({
      type: "t",
      key: String(index),
      topic: "orders",
      body: {},
    }));
    const outbox = createOutbox({ database });
    await outbox.transaction((tx) => outbox.enqueue(tx, messages));
  });
  afterEach(async () => {
    await bulk.close();
    await place.database.close();
    await place.drop();
  });

  const operation = (...args: readonly string[]): ReturnType<typeof rowpostHere> =>
    rowpostHere(["operation", ...args, "--database", place.url]);

  /** Started, with nothing done yet. */
  async function started(kind: BulkKind = "suspend"): Promise<string> {
    const { operation: made } = await bulk.preview({ kind, filter: { topic: "orders" }, author: "ann" });
    await bulk.start({ id: made.id, action, rate: 10_000 });
    return made.id;
  }

  async function sql(text: string) {
    const session = await place.database.connect({ purpose: "tool" });
    const { rows } = await session.run({ name: "test", text, params: [] });
    await session.close();
    return rows;
  }

  /** Newest first. */
  async function audit(): Promise<unknown[][]> {
    const rows = await sql("SELECT action, author, reason, via FROM local_message_audit ORDER BY id DESC");
    return rows.map((row) => [row["action"], row["author"], row["reason"], row["via"]]);
  }

  test("paused, nothing is changed; resumed it goes on; cancelled it is over, and each stands in the audit", async () => {
    const id = await started();
    const by = ["--author", "bob", "--reason"];
    expect(await operation("pause", id, ...by, "too fast")).toEqual({
      ...{ code: 0, stderr: "", stdout: "suspend is paused: 0 of 600 changed, 0 conflicts, 0 gone\n" },
    });
    expect(await bulk.work(WORKER)).toBeUndefined();
    expect(await operation("pause", id, ...by, "again")).toMatchObject({
      ...{ code: 1, stdout: "not changed: the operation is paused\n" },
    });
    expect(await operation("resume", id, ...by, "at night", "--json")).toMatchObject({ code: 0 });
    expect(await bulk.work(WORKER)).toEqual({ id });
    const { code, stdout } = await operation("cancel", id, ...by, "enough", "--json");
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { changed: true, operation: { id, state: "cancelled", changed: 500 } },
    ]);
    expect(await bulk.work(WORKER)).toBeUndefined();
    expect(await operation("resume", id, ...by, "no")).toMatchObject({ code: 1 });
    expect((await audit()).filter(([, author]) => author === "bob")).toEqual([
      ["operation cancel", "bob", "enough", "cli"],
      ["operation resume", "bob", "at night", "cli"],
      ["operation pause", "bob", "too fast", "cli"],
    ]);
    expect(await sql("SELECT state FROM local_message WHERE state = 5")).toHaveLength(500);
  });

  test("list and show say how far each is, and what it left as it was", async () => {
    expect(await operation("list")).toMatchObject({ code: 0, stdout: "none\n" });
    const id = await started();
    await sql("UPDATE local_message SET state = 2, lock_version = 7 WHERE message_key = '3'");
    // Between two batches it waits for its rate.
    while ((await bulk.work(WORKER)) !== undefined) expect(await bulk.read(id)).toMatchObject({ conflicts: 1 });
    const { operation: unseen } = await bulk.preview({ kind: "retry", filter: { topic: "orders" }, author: "ann" });
    const list = await operation("list");
    expect(list.stdout.split("\n")[1]).toContain(`${id}  suspend`);
    expect(list.stdout).toContain("599 of 600 changed, 1 conflict, 0 gone");
    expect(JSON.parse((await operation("list", "--json")).stdout)).toMatchObject([{ id, changed: 599 }]);
    const [row] = await sql("SELECT id FROM local_message WHERE message_key = '3'");
    const shown = await operation("show", id);
    expect(shown.stdout).toContain(`left as it was: ${String(row?.["id"])} is sent`);
    expect(shown.stdout).toContain("the broker is back");
    expect(JSON.parse((await operation("show", id, "--json")).stdout)).toMatchObject({
      ...{ operation: { id, conflicts: 1 }, conflicts: [{ id: String(row?.["id"]), state: "sent" }] },
    });
    expect(await operation("show", unseen.id), "nobody has started it").toMatchObject({ code: 1 });
  });

  test("2: no reason, or no id; 1: an id of nothing; nothing is changed", async () => {
    const id = await started();
    expect(await operation("pause", id)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--reason is missing"),
    });
    expect(await operation("pause", "7", "--reason", "r")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is no id"),
    });
    const other = id.replace(/^.{8}/, "00000000");
    expect(await operation("cancel", other, "--reason", "r")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("there is no"),
    });
    expect(await bulk.read(id)).toMatchObject({ state: "running" });
  });
}

describe("rowpost operation on sqlite", () => {
  cases(async () => {
    const made = await temporaryFile();
    return { database: sqlite({ file: made.file }), url: made.url, drop: () => made.remove() };
  });
});

describeWithService(["mariadb", "postgres"], "rowpost operation", ({ name }) => {
  cases(async () => {
    const made = await createTestDatabase(name);
    const database = name === "postgres" ? postgres({ url: made.url }) : mariadb({ url: made.url });
    return { database, url: made.url, drop: () => made.drop() };
  });
});
