/**
 * A member whose way to the database is broken: another one goes on, and what it writes late
 * changes nothing.
 */
import { afterEach, beforeEach, expect, it } from "vitest";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { queueMonth } from "../../src/message/queue-id.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import type { TcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { until } from "../until.ts";
import { createMembers, gate, type Members, numbers } from "./members.ts";
import { proxiedDatabase } from "./proxied.ts";

/** Between two looks of a replay. */
const LOOK_MS = 500;
const GROUP = { topic: "orders", group: "billing" };

describeWithService(["mariadb", "mysql9", "postgres"], "a member that is cut off", ({ name }) => {
  let proxy: TcpProxy;
  let far: Members;
  let near: Members;
  let queue: Queue;
  let farQueue: Queue;
  let query: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
  const closing: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    const proxied = await proxiedDatabase(name);
    const { made } = proxied;
    ({ proxy } = proxied);
    const open = name === "postgres" ? postgres : mysql;
    const [database, through] = [open({ url: made.url }), open({ url: proxied.farUrl })];
    queue = createQueue({ database });
    farQueue = createQueue({ database: through });
    far = createMembers(farQueue, { leaseMs: 3_000 });
    // It keeps what it takes over, even on a slow machine.
    near = createMembers(queue, { leaseMs: 15_000 });
    const hand = await database.connect({ purpose: "tool" });
    query = async (text) => (await hand.run({ name: "by hand", text, params: [] })).rows;
    closing.push(
      () => near.stopAll(),
      () => far.stopAll(),
      () => farQueue.close(),
      () => through.close(),
      () => proxy.close(),
      () => hand.close(),
      () => queue.close(),
      () => database.close(),
      () => made.drop(),
    );
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
  });
  afterEach(async () => {
    proxy.unmute();
    await proxy.accept();
    for (const close of closing.splice(0)) await close();
  });

  const owner = async () => (await query("SELECT owner FROM message_consumption"))[0]?.["owner"];

  /** What is promised: progress, records and what comes again. Who holds the partition is not. */
  const stateOf = async (ids: readonly string[]) => ({
    progress: await query("SELECT next_message_id FROM message_consumption"),
    records: await query(
      `SELECT message_id, attempt, instance, result FROM orders_message_info_consumption_${queueMonth(ids[0] ?? "0")} ORDER BY message_id`,
    ),
    redeliveries: await query("SELECT message_id FROM message_redelivery"),
  });

  it("stops in its time although the database answers nothing", { timeout: 30_000 }, async () => {
    const member = await far.start({ handler: () => undefined, drainTimeoutMs: 0, leaseMs: 60_000 });
    await until(() => member.partitions.length === 1);
    proxy.mute();
    expect(await member.stop()).toEqual({ drained: false });
    expect(member.partitions).toEqual([]);
  });

  it.each(["silent", "broken"] as const)(
    "writes nothing late: its connections were %s",
    { timeout: 60_000 },
    async (how) => {
      const handling = gate();
      const release = gate();
      const late: unknown[] = [];
      const member = await far.start({
        handler: async ({ body }) => {
          late.push(body);
          if (late.length === 5) handling.open();
          await release.opened;
        },
      });
      await until(() => member.partitions.length === 1);
      const cutOff = await owner();
      const ids = [...(await queue.append(numbers(5)))];
      await handling.opened;
      if (how === "silent") proxy.mute();
      else {
        await proxy.refuse();
        await proxy.cut();
      }
      // It holds the partition, as far as it knows: so it sends its settle, which is under way now.
      release.open();
      const seen = new Set<unknown>();
      await near.start({ handler: ({ body }) => void seen.add(body) });
      await until(async () => (await queue.groups(GROUP))[0]?.lag.count === 0);
      expect(seen).toEqual(new Set([0, 1, 2, 3, 4]));
      ids.push(...(await queue.append(numbers(3))));
      await until(async () => (await queue.groups(GROUP))[0]?.lag.count === 0);
      const before = await stateOf(ids);
      expect(before.records.map((record) => String(record["message_id"]))).toEqual(ids);
      expect(before.records.filter(({ instance }) => instance === cutOff)).toEqual([]);
      proxy.unmute();
      await proxy.accept();
      const [stopped] = await far.stopAll();
      expect(stopped).toBeDefined();
      // It may have got the partition again before it stopped: then it goes on where the other is.
      expect(await stateOf(ids)).toEqual(before);
      expect(late).toHaveLength(5);
      expect(new Set(late)).toEqual(new Set([0, 1, 2, 3, 4]));
    },
  );

  it("goes on with a replay once the database is back", { timeout: 60_000 }, async () => {
    await queue.append(numbers(20));
    const handling = gate();
    const release = gate();
    const seen = new Set<unknown>();
    let looks = 0;
    const clock: Clock = {
      ...systemClock,
      sleep(ms, signal) {
        if (ms === LOOK_MS) looks += 1;
        return systemClock.sleep(ms, signal);
      },
    };
    const replaying = farQueue.replay({
      ...GROUP,
      from: "start",
      leaseMs: 3_000,
      logger: "silent",
      clock,
      async handler({ body }) {
        handling.open();
        await release.opened;
        seen.add(body);
      },
    });
    await handling.opened;
    await proxy.refuse();
    await proxy.cut();
    release.open();
    const before = looks;
    // Each begins when the one before it is over: that one has met nobody.
    await Promise.race([until(() => looks >= before + 2), replaying]);
    await proxy.accept();
    expect(await replaying).toMatchObject({ complete: true, dead: 0 });
    expect(seen.size).toBe(20);
  });
});
