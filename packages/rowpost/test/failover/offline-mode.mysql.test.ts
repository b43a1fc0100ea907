/**
 * MySQL's `offline_mode`, the firm way to take a primary out of service: it ends the sessions of
 * everybody but administrators, and refuses new ones with an error of its own (3032).
 */
import { afterEach, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import type { Database } from "../../src/databases/database.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { mysqlPrograms } from "../own-servers/own-mysql.ts";
import { describeWithPrograms } from "../own-servers/own-server.ts";
import { until } from "../until.ts";
import { createShop, judge, makeTables, rows, unfinished } from "./orders.ts";
import { usePairs } from "./pair.ts";
import { proxySwitch } from "./switch.ts";

/** Longer than a lease of 2 s: the pauses between the first six are 2.5 s together. */
const HEARTBEATS = 8;

describeWithPrograms(mysqlPrograms, "offline_mode", () => {
  const pairs = usePairs("mysql");
  /** What is to be done after the test, the last one first. */
  const endings: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const end of endings.splice(0).toReversed()) await end();
  });

  const leases = (on: Database) => rows(on, "SELECT shard, owner, epoch FROM local_message_shard ORDER BY shard");

  it("a primary that is taken out of service for longer than a lease: the relay waits, and goes on with its shards on the new one", async () => {
    const pair = await pairs.start();
    const turn = await proxySwitch(pair.primary);
    endings.push(() => turn.close());
    const old = pairs.open(turn.address);
    await makeTables(old);
    const said: string[] = [];
    const note = (line: string, fields?: Readonly<Record<string, unknown>>): void => {
      said.push(`${line} ${String(fields?.["error"])}`);
    };
    let heartbeats = 0;
    const broker = memory();
    const relay = createRelay({
      database: old,
      broker,
      leaseMs: 2_000,
      heartbeatMs: 500,
      publishTimeoutMs: 1_000,
      drainTimeoutMs: 2_000,
      logger: { debug: () => {}, info: () => {}, warn: note, error: note },
      async onFaultPoint(reached) {
        if (reached === "heartbeat") heartbeats += 1;
      },
    });
    endings.push(() => relay.stop());
    await relay.start();
    await createShop(old).place(4);
    await broker.waitFor(12, { withinMs: 60_000 });
    await until(async () => (await unfinished(old)) === 0);
    const before = await leases(old);
    said.length = 0;

    await pair.primary.sql("SET GLOBAL offline_mode = ON");
    const enough = heartbeats + HEARTBEATS;
    const isGivenUp = (): boolean => said.some((line) => line.includes("giving all shards up"));
    await until(() => heartbeats >= enough || isGivenUp());
    expect(said.filter((line) => line.includes("refuses a statement") || line.includes("giving all"))).toEqual([]);
    expect(said.filter((line) => line.includes("offline mode"))).not.toEqual([]);

    await pair.caughtUp();
    await pair.promote();
    turn.turnTo(pair.replica);
    const on = pairs.open(`${pair.replica.host}:${pair.replica.port}`);
    await createShop(on, "after").place(2);
    await broker.waitFor(18, { withinMs: 60_000 });
    await until(async () => (await unfinished(on)) === 0);
    expect(await judge({ delivered: broker.published().map(({ key }) => key), on })).toBe(0);
    expect(await leases(on)).toEqual(before);
  });
});
