/** Consumers of one queue share their sessions, and keep nobody else waiting. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Session } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { monthOf } from "../../src/message/queue-id.ts";
import { type Consumer, createQueue, type Queue, type QueueConsumeOptions } from "../../src/queue/index.ts";
import type { TcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { until } from "../until.ts";
import { proxiedDatabase } from "./proxied.ts";

const MANY = 30;

describeWithService(["mariadb", "mysql9", "postgres"], "consumers that share sessions", ({ name }) => {
  let proxy: TcpProxy;
  let queue: Queue;
  let hand: Session;
  let open: () => Promise<Session>;
  const closing: (() => Promise<unknown>)[] = [];
  const isPostgres = name === "postgres";

  beforeEach(async () => {
    const proxied = await proxiedDatabase(name);
    const { made } = proxied;
    ({ proxy } = proxied);
    const connect = isPostgres ? postgres : mysql;
    const [database, through] = [connect({ url: made.url }), connect({ url: proxied.farUrl })];
    queue = createQueue({ database: through });
    open = async () => {
      const session = await database.connect({ purpose: "tool" });
      closing.unshift(() => session.close());
      return session;
    };
    closing.push(
      () => queue.close(),
      () => through.close(),
      () => database.close(),
      () => proxy.close(),
      () => made.drop(),
    );
    hand = await open();
    await queue.migrate();
    for (const topic of ["orders", "mails"]) await queue.createTopic({ topic });
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  const run = async (session: Session, text: string) => (await session.run({ name: "by hand", text, params: [] })).rows;

  async function start(
    options: Partial<QueueConsumeOptions> & Pick<QueueConsumeOptions, "handler">,
  ): Promise<Consumer> {
    const member = await queue.consume({ topic: "orders", group: "billing", logger: "silent", ...options });
    closing.unshift(() => member.stop());
    return member;
  }

  async function startMany(handler: QueueConsumeOptions["handler"]): Promise<Consumer[]> {
    const members = [];
    for (let number = 0; number < MANY; number += 1) members.push(await start({ group: `group_${number}`, handler }));
    return members;
  }

  const leaseOf = async (group: string) =>
    (await run(hand, `SELECT lease_until FROM message_consumption WHERE consumer_group_id = '${group}'`))[0]?.[
      "lease_until"
    ];

  it("need a few connections, which say whose they are; one that stops leaves the others", async () => {
    const seen: string[] = [];
    const members = await startMany(() => void seen.push("handled"));
    const connections = async () =>
      isPostgres
        ? await run(
            hand,
            "SELECT application_name AS name FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
          )
        : await run(
            hand,
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
          );
    // Those of the start are closed.
    await until(async () => (await connections()).length <= 5);
    if (isPostgres) {
      const names = (await connections()).map((row) => row["name"]);
      expect(names).toEqual(expect.arrayContaining(["rowpost consumer", "rowpost consumer lease", "rowpost listen"]));
    }
    await members[0]?.stop();
    await queue.append({ topic: "orders", body: 1 });
    await until(() => seen.length === MANY - 1);
  });

  it("are not held up by others whose reads take long", { timeout: 60_000 }, async () => {
    const seen: string[] = [];
    const quick = await start({ topic: "mails", handler: () => void seen.push("mail") });
    await until(() => quick.partitions.length === 1);
    await queue.append({ topic: "orders", body: 1 });
    const blocker = await open();
    const table = `orders_message_info_${monthOf(Date.now())}`;
    if (isPostgres) await run(blocker, "BEGIN");
    await run(blocker, isPostgres ? `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE` : `LOCK TABLES ${table} WRITE`);
    await startMany(() => void seen.push("order"));
    const waiting = isPostgres
      ? "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
      : "SELECT COUNT(*) AS n FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table%'";
    // More than go at once, were each of them to count.
    await until(async () => Number((await run(hand, waiting))[0]?.["n"]) > 8);
    await queue.append({ topic: "mails", body: 1 });
    await until(() => seen.length > 0);
    expect(seen).toEqual(["mail"]);
    await run(blocker, isPostgres ? "ROLLBACK" : "UNLOCK TABLES");
    await until(() => seen.length === MANY + 1);
  });

  it("keep their leases beside one whose row somebody holds, which is not taken for renewed", async () => {
    const leaseMs = 2_000;
    const seen: string[] = [];
    const held = await start({ group: "held", leaseMs, handler: () => void seen.push("held") });
    await start({ group: "free", leaseMs, handler: () => void seen.push("free") });
    await until(async () => held.partitions.length === 1 && (await leaseOf("free")) !== undefined);
    const blocker = await open();
    await blocker.transaction(async (tx) => {
      // By its key: a scan that meets the other row while it is being renewed keeps that one too.
      const text =
        "SELECT 1 FROM message_consumption WHERE topic_id = 'orders' AND consumer_group_id = 'held' AND partition_no = 0 FOR UPDATE";
      await tx.run({ name: "by hand", text, params: [] });
      const before = await leaseOf("held");
      let free = await leaseOf("free");
      let renewals = 0;
      const endMs = performance.now() + 2 * leaseMs;
      // Longer than the lease, and the others beat on.
      await until(async () => {
        const now = await leaseOf("free");
        if (now !== free) renewals += 1;
        free = now;
        return renewals >= 5 && performance.now() > endMs;
      });
      await queue.append({ topic: "orders", body: 1 });
      await until(() => seen.includes("free"));
      // Its lease is over: another member could have taken it.
      expect({ seen, held: await leaseOf("held") }).toEqual({ seen: ["free"], held: before });
    });
    await until(() => seen.includes("held"));
  });

  it("go on when their connections are cut", { timeout: 60_000 }, async () => {
    const seen: string[] = [];
    await startMany(() => void seen.push("handled"));
    await proxy.cut();
    await queue.append({ topic: "orders", body: 1 }).catch(() => queue.append({ topic: "orders", body: 1 }));
    await until(() => seen.length >= MANY);
  });
});
