/**
 * Changes of many messages whose process is killed or cancelled in the middle, and beside a relay:
 * each message is changed once, and what is published stays so.
 */
import { writeFile } from "node:fs/promises";
import { createOutbox, createRelay, type Database, memory, migrate } from "rowpost";
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { randomSecret, sha256 } from "../src/access/secrets.ts";
import { type Running, startRowpost, temporaryFile } from "./command.ts";

/** Six batches of 500. */
const MESSAGES = 3_000;
/** In the fourth one. */
const HELD = "1700";

describeWithService(["mariadb", "postgres"], "many messages", ({ name }) => {
  let place: Awaited<ReturnType<typeof createTestDatabase>>;
  let files: Awaited<ReturnType<typeof temporaryFile>>;
  let database: Database;
  let session: Awaited<ReturnType<Database["connect"]>>;
  let running: Running[];

  beforeEach(async () => {
    place = await createTestDatabase(name);
    files = await temporaryFile();
    running = [];
    database = name === "postgres" ? postgres({ url: place.url }) : mysql({ url: place.url });
    session = await database.connect({ purpose: "tool" });
    await migrate(database, { layout: database.defaultLayout });
    const outbox = createOutbox({ database });
    for (let from = 0; from < MESSAGES; from += 1_000) {
      const keys = Array.from({ length: 1_000 }, (_, index) => String(from + index));
      const messages = keys.map((key) => ({ type: "order.created", key, topic: "orders", body: {} }));
      await outbox.transaction((tx) => outbox.enqueue(tx, messages));
    }
  });
  afterEach(async () => {
    for (const { child, finished } of running) {
      child.kill("SIGKILL");
      await finished;
    }
    await session.close();
    await database.close();
    await place.drop();
    await files.remove();
  });

  async function sql(text: string) {
    return (await session.run({ name: "test", text, params: [] })).rows;
  }

  const fail = () => sql("UPDATE local_message SET state = 3, lock_version = 0, fail_reason = 'HTTP_503: away'");

  function start(...args: readonly string[]): Running {
    const made = startRowpost([...args, "--database", place.url]);
    running.push(made);
    return made;
  }

  /** Nobody comes past a message of the fourth batch until `work` is over. */
  async function held(work: () => Promise<void>): Promise<void> {
    const [row] = await sql(`SELECT id FROM local_message WHERE message_key = '${HELD}'`);
    // By its id: without an index each row that is looked at would be locked.
    const text = `SELECT id FROM local_message WHERE id = ${String(row?.["id"])} FOR UPDATE`;
    const holding = await database.connect({ purpose: "tool" });
    try {
      await holding.transaction(async (tx) => {
        await tx.run({ name: "hold", text, params: [] });
        await work();
      });
    } finally {
      await holding.close();
    }
  }

  const changedSoFar = async (): Promise<number> =>
    Number((await sql("SELECT SUM(changed) AS n FROM local_message_audit"))[0]?.["n"] ?? 0);

  async function threeBatches(): Promise<void> {
    await expect.poll(changedSoFar, { timeout: 20_000, interval: 10 }).toBe(1_500);
  }

  /** What the audit says of whole changes, the oldest first. */
  async function told(): Promise<unknown[]> {
    const entries = await sql("SELECT result, details FROM local_message_audit WHERE action LIKE 'many %' ORDER BY id");
    return entries.map(({ details, result }) => {
      const { changed } = JSON.parse(String(details)) as { readonly changed?: number };
      return changed === undefined ? result : `${String(result)} ${changed}`;
    });
  }

  async function eachChangedOnce(): Promise<void> {
    const rows = await sql("SELECT state, lock_version, COUNT(*) AS n FROM local_message GROUP BY state, lock_version");
    expect(rows.map((row) => [row["state"], row["lock_version"], row["n"]].map(Number))).toEqual([[0, 1, MESSAGES]]);
    expect(await changedSoFar()).toBe(MESSAGES);
  }

  test("killed on the command line, the rest is changed by the same command", async () => {
    await fail();
    await held(async () => {
      const retry = start("retry", "--topic", "orders");
      await threeBatches();
      retry.child.kill("SIGKILL");
      await retry.finished;
    });
    expect(await told()).toEqual(["begun"]);
    expect(await start("retry", "--topic", "orders").finished).toMatchObject({
      code: 0,
      stdout: "retried 1500 messages\n",
    });
    await eachChangedOnce();
    expect(await told()).toEqual(["begun", "begun", "done 1500"]);
  });

  test("SIGINT ends it behind its batch, and says so", async () => {
    await fail();
    const retry = start("retry", "--topic", "orders");
    await held(async () => {
      await threeBatches();
      retry.child.kill("SIGINT");
      await retry.printed("cancelled behind the batch that runs");
    });
    const { code, stdout } = await retry.finished;
    // Behind the third batch or the fourth: who commits it may hear of the signal before or after.
    const changed = await changedSoFar();
    expect([1_500, 2_000]).toContain(changed);
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: `retried ${changed} messages\ncancelled: the others are as they were\n`,
    });
    expect(await told()).toEqual(["begun", `cancelled ${changed}`]);
  });

  test("killed with its console, the rest is changed by the same filter in another one", async () => {
    await fail();
    const token = `rp_${randomSecret()}`;
    const access = `${files.file}.json`;
    await writeFile(access, JSON.stringify({ tokens: [{ name: "ann", role: "operator", hash: sha256(token) }] }));

    /** Starts a console, and asks it. */
    async function console() {
      const started = start("console", "--listen", "0", "--access", access);
      await started.printed(/console at \S+/);
      const [, url] = /console at (\S+)/.exec(started.stdout()) ?? [];
      const ask = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
        const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
        const answer = await fetch(`${url}api/v1/s/main${path}`, init);
        expect(answer.status, `${method} ${path}`).toBe(200);
        return (await answer.json()) as Record<string, unknown>;
      };
      return { ...started, ask };
    }
    type Told = Readonly<Record<string, unknown>> & { readonly id: string };
    async function retried(of: Awaited<ReturnType<typeof console>>): Promise<Told> {
      const filter = { topic: "orders" };
      const { operation } = await of.ask("POST", "/previews", { kind: "retry", filter });
      const { id } = operation as Told;
      await of.ask("POST", "/operations", { preview: id, reason: "the broker is back" });
      return operation as Told;
    }

    const first = await console();
    await held(async () => {
      const { id, total } = await retried(first);
      expect(total).toEqual({ value: MESSAGES, relation: "eq" });
      await threeBatches();
      // The console counts a batch when its COMMIT was answered, a moment behind the audit.
      const read = async () => (await first.ask("GET", `/operations/${id}`))["operation"];
      await expect.poll(read).toMatchObject({ state: "running", changed: 1_500, left: 0, vanished: 0 });
      first.child.kill("SIGKILL");
      await first.finished;
    });
    const second = await console();
    expect((await second.ask("GET", "/operations"))["items"]).toEqual([]);
    const { id, total } = await retried(second);
    expect(total).toEqual({ value: MESSAGES - 1_500, relation: "eq" });
    const read = async () => (await second.ask("GET", `/operations/${id}`))["operation"];
    await expect.poll(read, { timeout: 20_000 }).toMatchObject({ state: "done", changed: 1_500, total });
    await eachChangedOnce();
    expect(await told()).toEqual(["begun", "begun", "done 1500"]);
  });

  async function untilNoneWaits(): Promise<void> {
    const waiting = async () =>
      Number((await sql("SELECT COUNT(*) AS n FROM local_message WHERE state IN (0, 1)"))[0]?.["n"]);
    await expect.poll(waiting, { timeout: 20_000 }).toBe(0);
  }

  test("beside a relay each is published or suspended, and none of them both", async () => {
    const broker = memory();
    const relay = createRelay({ database, broker, logger: "silent", batchSize: 50 });
    const admin = database.messageAdmin({ layout: database.defaultLayout });
    await relay.start();
    try {
      await broker.waitFor(100);
      const action = { author: "ann", reason: "stop" };
      const { changed, left } = await admin.changeMany({ kind: "suspend", filter: { topic: "orders" }, action });
      await untilNoneWaits();
      const published = broker.published("orders").map(({ key }) => key);
      expect(new Set(published).size).toBe(published.length);
      const rows = await sql("SELECT message_key, state FROM local_message");
      const inState = (state: number) =>
        rows.filter((row) => Number(row["state"]) === state).map((row) => String(row["message_key"]));
      expect(inState(2).toSorted()).toEqual(published.toSorted());
      expect(inState(5)).toHaveLength(changed);
      expect(published.length + changed).toBe(MESSAGES);
      expect([changed, left]).not.toEqual([0, 0]);
      // What is let go is published as well, and then all of them once.
      await admin.changeMany({ kind: "resume", filter: { topic: "orders" }, action });
      await untilNoneWaits();
      expect(new Set(broker.published("orders").map(({ key }) => key)).size).toBe(MESSAGES);
      expect(broker.published("orders")).toHaveLength(MESSAGES);
    } finally {
      await relay.stop();
      await admin.close();
    }
  });
});
