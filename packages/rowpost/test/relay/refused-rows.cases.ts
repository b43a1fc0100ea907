/**
 * An outcome that the table does not take keeps no other one of its batch waiting: the row is
 * written in plainer words, or held alone.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type MemoryBroker, memory } from "../../src/brokers/memory.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

/** What a broker answers to the odd one, and how the row then says so. */
const EMOJI = "kaputt 😀";
const SENT = 2;
const FAILED = 3;

export interface RefusedRowsOptions {
  /** Makes the column take these characters only. */
  readonly narrow?: Readonly<Record<string, string>>;
  /** Makes the columns shorter than the layout says. */
  readonly shorten: string;
  /** Refuses every change of the row with the key `odd` to state 2. */
  readonly refuseOdd: readonly string[];
  /** Takes that back. */
  readonly allowOdd: string;
}

/** Defines the cases. */
export function defineRefusedRowsCases(service: RelayTestService, options: RefusedRowsOptions): void {
  let database: RelayTestDatabase;
  beforeEach(async () => {
    database = await createRelayDatabase(service);
  });
  afterEach(() => database.drop());

  const keys = ["a", "b", "odd", "c", "d", "e"];
  const insert = () => database.insert(keys.map((key) => ({ key })));

  /** Fails the odd one for good, with this reason; a receipt for it when there is none. */
  function brokerOf(reason: string, receipt?: string): MemoryBroker {
    return memory({
      outcome: ({ key }) => {
        if (key !== "odd") return undefined;
        if (receipt !== undefined) return { status: "sent", messageId: receipt };
        return { status: "failed", scope: "message", code: "BAD", reason, retriable: false };
      },
    });
  }

  async function rows() {
    const found = await database.sql(
      "SELECT message_key AS k, state AS s, fail_reason AS f, message_id AS m FROM local_message ORDER BY id",
    );
    return found.map((row) => ({ key: row["k"], state: Number(row["s"]), reason: row["f"], receipt: row["m"] }));
  }

  async function tick(
    broker: MemoryBroker,
    onSent: "keep" | "archive" | "delete" = "keep",
  ): Promise<readonly string[]> {
    const lines: string[] = [];
    const note = (line: string): void => void lines.push(line);
    const logger = { debug() {}, info() {}, warn: note, error: note };
    const relay = createRelay({ database: database.connect(), broker, logger, retention: { onSent } });
    await relay.tick();
    await relay.stop();
    return lines;
  }

  const others = expect.arrayContaining(
    keys.filter((key) => key !== "odd").map((key) => expect.objectContaining({ key, state: SENT })),
  );

  describe("an outcome that the table refuses", () => {
    for (const [name, sql] of Object.entries(options.narrow ?? {})) {
      it(`is written in ASCII where the columns are ${name}`, async () => {
        await database.sql(sql);
        await insert();
        await tick(brokerOf(EMOJI));
        const now = await rows();
        expect(now).toEqual(others);
        expect(now[2]).toMatchObject({ state: FAILED, reason: "BAD: kaputt \\uD83D\\uDE00" });
      });

      it(`stays sent, with a receipt in ASCII, where the columns are ${name}`, async () => {
        await database.sql(sql);
        await insert();
        await tick(brokerOf("", "id-😀"));
        const now = await rows();
        expect(now).toEqual(others);
        expect(now[2]).toMatchObject({ state: SENT, receipt: "id-\\uD83D\\uDE00" });
      });
    }

    it("is cut until it fits a column that is shorter than the layout says", async () => {
      await database.sql(options.shorten);
      await insert();
      const lines = await tick(brokerOf("x".repeat(35)));
      const now = await rows();
      expect(now).toEqual(others);
      expect(now[2]).toMatchObject({ state: FAILED, reason: `BAD: ${"x".repeat(15)}` });
      expect(lines.filter((line) => line.includes("does not take"))).toHaveLength(1);
    });

    for (const onSent of ["delete", "archive"] as const) {
      it(`stays sent with onSent ${onSent} where another table refers to the row, and only that one`, async () => {
        await insert();
        await database.sql("CREATE TABLE parcel (message BIGINT, FOREIGN KEY (message) REFERENCES local_message (id))");
        await database.sql("INSERT INTO parcel SELECT id FROM local_message WHERE message_key = 'odd'");
        await tick(memory(), onSent);
        expect(await rows()).toEqual([expect.objectContaining({ key: "odd", state: SENT })]);
      });
    }

    it("waits alone where a trigger refuses it, is told once, and is written once it is allowed", async () => {
      for (const sql of options.refuseOdd) await database.sql(sql);
      await insert();
      const lines: string[] = [];
      let onHeld: (() => void) | undefined;
      const isHeld = new Promise<void>((resolve) => {
        onHeld = resolve;
      });
      const error = (line: string): void => {
        lines.push(line);
        if (line.includes("does not take the outcome")) onHeld?.();
      };
      const logger = { debug() {}, info() {}, warn() {}, error };
      const broker = memory();
      const relay = createRelay({ database: database.connect(), broker, logger });
      await relay.start();
      try {
        await isHeld;
        await expect
          .poll(async () => (await rows()).filter(({ state }) => state === SENT).length, { timeout: 30_000 })
          .toBe(5);
        expect(await rows()).toEqual(others);
        await database.sql(options.allowOdd);
        await expect.poll(async () => (await rows())[2]?.state, { timeout: 30_000 }).toBe(SENT);
      } finally {
        await relay.stop();
      }
      expect(lines).toHaveLength(1);
      expect(broker.published().map(({ key }) => key)).toEqual(keys);
    });
  });
}
