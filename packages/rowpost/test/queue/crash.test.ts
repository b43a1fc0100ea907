/** Members that die or freeze at named points: what they leave, and how soon others go on. */
import { once } from "node:events";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ConsumerFaultPoint } from "../../src/queue/consuming/options.ts";
import type { Queue } from "../../src/queue/index.ts";
import { untilStopped } from "../own-process.ts";
import { type Ledger, openLedger } from "./ledger.ts";
import { describeOnAll, type QueuePlace } from "./places.ts";

const MESSAGES = 200;

describeOnAll("members that die", (make, { isServer }) => {
  let ledger: Ledger;
  let place: QueuePlace;
  let queue: Queue;
  const start: Ledger["start"] = (task) => ledger.start(task);

  beforeEach(async () => {
    ledger = await openLedger(make, "./consumer.process.mjs");
    ({ place, queue } = ledger);
    await place.query("CREATE TABLE effects (id VARCHAR(30) NOT NULL)");
  });
  afterEach(() => ledger.close());

  const until = (condition: () => unknown): Promise<unknown> =>
    vi.waitUntil(condition, { timeout: 40_000, interval: 10 });
  const delivered = (): string[] => ledger.lines().map((line) => line.split(" ")[2] as string);
  const append = (): Promise<string[]> =>
    queue.append(
      Array.from({ length: MESSAGES }, (_, index) => ({ topic: "orders", key: String(index), body: index })),
    );
  const records = async (): Promise<number> => {
    const [table] = await place.query("SELECT message_date FROM message_consumption");
    const [row] = await place.query(
      `SELECT COUNT(*) AS n FROM orders_message_info_consumption_${Number(table?.["message_date"])}`,
    );
    return Number(row?.["n"]);
  };

  const points: ConsumerFaultPoint[] = ["read", "handled", "before settle", "after settle"];

  it.each(points)("repeats only what was under way: killed at '%s'", { timeout: 60_000 }, async (point) => {
    const ids = await append();
    const killed = start({ transactional: false, point, hit: point === "handled" ? 65 : 4 });
    await once(killed, "exit");
    expect(killed.signalCode).toBe("SIGKILL");
    start({ transactional: false });
    await until(() => new Set(delivered()).size === MESSAGES);
    await until(async () => (await records()) === MESSAGES);
    const seen = delivered();
    // At most two batches of 20 are under way.
    expect(seen.length - MESSAGES).toBeLessThanOrEqual(40);
    expect([...new Set(seen)]).toEqual(ids);
  });

  it.each([
    ...([...points, "within settle"] as const).map((point) => [point, "alone", undefined] as const),
    ...(["handled", "within settle"] as const).map((point) => [point, "in batches", 10] as const),
  ])(
    "has each effect once when it is transactional: killed at '%s', messages %s",
    { timeout: 60_000 },
    async (point, _how, size) => {
      const ids = await append();
      const killed = start({
        transactional: true,
        size,
        point,
        hit: point === "handled" && size === undefined ? 65 : 4,
      });
      await once(killed, "exit");
      expect(killed.signalCode).toBe("SIGKILL");
      start({ transactional: true, size });
      await until(async () => (await records()) === MESSAGES);
      const effects = await place.query("SELECT id FROM effects ORDER BY id");
      expect(effects.map(({ id }) => id)).toEqual(ids);
    },
  );

  it("takes over all partitions of a killed member at once, and each goes on where it was", {
    timeout: 60_000,
  }, async () => {
    await queue.alterTopic({ topic: "orders", partitions: 8 });
    const ids: string[] = [];
    for (let call = 0; call < 8; call += 1) ids.push(...(await append()));
    const killed = start({ transactional: false, point: "after settle", hit: 20 });
    await once(killed, "exit");
    expect(killed.signalCode).toBe("SIGKILL");
    const owners = async () =>
      (await place.query("SELECT owner, epoch FROM message_consumption")).map(
        ({ owner, epoch }) => `${String(owner)} ${Number(epoch)}`,
      );
    const before = await owners();
    expect(before).toHaveLength(8);
    expect(new Set(before).size, "one member has them all").toBe(1);
    start({ transactional: false });
    await until(() => new Set(delivered()).size === ids.length);
    const taken = await owners();
    expect(taken).toHaveLength(8);
    expect(new Set(taken).size, "another member has them all").toBe(1);
    expect(taken[0]?.split(" ")[1]).toBe("2");
    const seen = delivered();
    // At most two batches of 20 of each partition are under way.
    expect(seen.length - ids.length).toBeLessThanOrEqual(8 * 40);
    const firsts = [...new Set(seen)];
    const inPartition = (list: readonly string[], partition: number) =>
      list.filter((id) => Number(BigInt(id) & 63n) === partition);
    for (let partition = 0; partition < 8; partition += 1) {
      expect(inPartition(firsts, partition)).toEqual(inPartition(ids, partition));
    }
  });

  // On SQLite the frozen one has the file's only write lock: nobody can go on before it does.
  if (!isServer) return;

  it("goes on without a member that is frozen past its lease, whose late settle changes nothing", {
    timeout: 60_000,
  }, async () => {
    const ids = await append();
    const frozen = start({ transactional: true, point: "within settle", hit: 2, signal: "SIGSTOP" });
    await untilStopped(frozen.pid as number);
    start({ transactional: true });
    await until(async () => (await records()) === MESSAGES);
    frozen.kill("SIGCONT");
    frozen.kill("SIGTERM");
    await once(frozen, "exit");
    const effects = await place.query("SELECT id FROM effects ORDER BY id");
    expect(effects.map(({ id }) => id)).toEqual(ids);
  });
});
