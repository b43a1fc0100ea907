/**
 * A row that the table refuses to change: a CHECK that it does not meet any more, a trigger. It
 * keeps no other one waiting, at whatever work it is met, and the work of nobody stops.
 */
import { describe, expect, it } from "vitest";
import type { RelayOptions } from "../../src/relay/options.ts";
import { keysOf, STATE, useRuleBench } from "../rules/rule-bench.ts";
import type { RelayTestService } from "./bench-database.ts";

export interface UntakenRowsOptions {
  /** Refuses every change of rows with the key `odd` in the table of messages. */
  readonly refuse: readonly string[];
  /** Takes that back. */
  readonly allow: string;
  /** Keeps them out of the archive. */
  readonly refuseArchive: string;
}

const LINE = "the table does not take a change of a message; passing it over, trying again later";
const HOLD_MS = 5_000;
/** Between two looks of the sweep that must agree; and more than that. */
const SWEEP_MS = 60_000;
const PAST = "'2001-01-01 00:00:00'";

/** Defines the cases. */
export function defineUntakenRowsCases(service: RelayTestService, options: UntakenRowsOptions): void {
  const bench = useRuleBench(service);
  const keys = ["a", "b", "odd", "c", "d", "e"];
  const others = keys.filter((key) => key !== "odd");
  const allow = () => bench.database.sql(options.allow);

  /** Inserts them, puts them as they shall be, and refuses further changes of the odd one. */
  async function arrange(set?: string, orderingKey?: string): Promise<void> {
    await bench.database.insert(keys.map((key) => ({ key, ...(orderingKey === undefined ? {} : { orderingKey }) })));
    if (set !== undefined) await bench.database.sql(`UPDATE local_message SET ${set}`);
    for (const sql of options.refuse) await bench.database.sql(sql);
  }

  async function states(): Promise<Record<string, number>> {
    const rows = await bench.database.sql("SELECT message_key AS k, state AS s FROM local_message ORDER BY id");
    return Object.fromEntries(rows.map((row) => [String(row["k"]), Number(row["s"])]));
  }

  const allBut = (state: number, odd: number) =>
    Object.fromEntries(keys.map((key) => [key, key === "odd" ? odd : state]));

  function relayOf(more: Partial<RelayOptions> = {}) {
    const told: unknown[] = [];
    const error = (line: string, fields?: Readonly<Record<string, unknown>>): void => {
      told.push(line === LINE ? fields?.["doing"] : line);
    };
    const logger = { debug() {}, info() {}, warn() {}, error };
    return { ...bench.relay({ relay: { logger, ...more } }), told };
  }

  it("is left out of the claims, told once, and sent when the table takes it", async () => {
    await arrange();
    const { relay, broker, told } = relayOf();
    for (let round = 0; round < 3; round += 1) await relay.tick();
    expect(keysOf(broker.published())).toEqual(others);
    expect(await states()).toEqual(allBut(STATE.sent, STATE.pending));
    expect((await relay.tick()).exhausted).toBe(true);
    await bench.clock.advance(HOLD_MS);
    await relay.tick();
    expect(await states()).toEqual(allBut(STATE.sent, STATE.pending));
    await allow();
    await bench.clock.advance(2 * HOLD_MS);
    await relay.tick();
    expect(await states()).toEqual(allBut(STATE.sent, STATE.sent));
    expect(told).toEqual(["claim"]);
  });

  it("holds up the later messages of its ordering key, and those alone", async () => {
    await arrange(undefined, "k");
    await bench.database.insert([{ key: "x", orderingKey: "other" }]);
    const { relay, broker } = relayOf();
    for (let round = 0; round < 3; round += 1) await relay.tick();
    expect(keysOf(broker.published()).sort()).toEqual(["a", "b", "x"]);
    expect((await relay.tick()).exhausted).toBe(true);
    await allow();
    for (let round = 0; round < 9; round += 1) {
      await bench.clock.advance(HOLD_MS);
      await relay.tick();
    }
    expect(keysOf(broker.published()).filter((key) => key !== "x")).toEqual(keys);
  });

  it("keeps no shard from being taken, and what was sent with it goes at once", async () => {
    await arrange(`state = ${STATE.sending}`);
    const { relay, told } = relayOf();
    await relay.tick();
    await relay.tick();
    expect(await states()).toEqual(allBut(STATE.sent, STATE.sending));
    await allow();
    for (let round = 0; round < 4; round += 1) {
      await bench.clock.advance(SWEEP_MS);
      await relay.tick();
    }
    expect(await states()).toEqual(allBut(STATE.sent, STATE.sent));
    expect(told).toEqual(["recover"]);
  });

  it("keeps no timer from coming", async () => {
    await arrange(`state = ${STATE.failed}, next_retry_at = ${PAST}`);
    const { relay, told } = relayOf();
    for (let round = 0; round < 3; round += 1) await relay.tick();
    expect(await states()).toEqual(allBut(STATE.sent, STATE.failed));
    expect(told).toEqual(["timer"]);
  });

  it("keeps no broken message from failing", async () => {
    await arrange("headers = '{'");
    const { relay } = relayOf();
    for (let round = 0; round < 2; round += 1) await relay.tick();
    expect(await states()).toEqual(allBut(STATE.failed, STATE.pending));
  });

  it("keeps no follower behind a message that is gone", async () => {
    await arrange("next_retry_at = '3000-01-01 00:00:00.999'", "k");
    await bench.database.sql("UPDATE local_message SET ordering_key = 'own' WHERE message_key <> 'odd'");
    const { relay, told } = relayOf();
    for (let round = 0; round < 2; round += 1) await relay.tick();
    expect(await states()).toEqual(allBut(STATE.sent, STATE.pending));
    expect(told).toEqual(["bring back"]);
  });

  it("keeps no backed-off message of its topic from coming forward, one step apart", async () => {
    await arrange("next_retry_at = '2900-01-01 00:00:00', retry_count = 1");
    const { relay, told } = relayOf();
    await relay.tick();
    expect(await relay.resetBackoff("orders")).toBe(others.length);
    const rows = await bench.database.sql(
      "SELECT message_key AS k FROM local_message WHERE next_retry_at < '2900-01-01 00:00:00' ORDER BY next_retry_at, id",
    );
    expect(rows.map((row) => row["k"])).toEqual(others);
    expect(told).toEqual(["bring forward"]);
  });

  describe("in the archive", () => {
    for (const keepMs of [0, 1]) {
      it(`keeps none of the others out of it, after ${keepMs} ms`, async () => {
        await bench.database.sql(options.refuseArchive);
        await bench.database.insert(keys.map((key) => ({ key })));
        const { relay } = relayOf({ retention: { onSent: "archive", keepMs } });
        for (let round = 0; round < 3; round += 1) await relay.tick();
        expect(await states()).toEqual({ odd: STATE.sent });
        const archived = await bench.database.sql("SELECT message_key AS k FROM local_message_archive ORDER BY id");
        expect(archived.map((row) => row["k"])).toEqual(others);
      });
    }
  });
}
