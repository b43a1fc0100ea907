/** Consumers report to the outbox while and after the relay sends; bound by confirm.*.test.ts. */
import { describe, expect, it } from "vitest";
import { messageType } from "../../src/message/message-type.ts";
import { createOutbox, type Outbox } from "../../src/outbox/outbox.ts";
import type { RelayEvents } from "../../src/relay/events.ts";
import {
  ConfigurationError,
  DatabaseConflictError,
  InvalidMessageError,
  MissingAwaitError,
  TransactionRequiredError,
} from "../../src/runtime/errors.ts";
import { keysOf, STATE, useRuleBench } from "../rules/rule-bench.ts";
import type { RelayTestService } from "./bench-database.ts";

const MINUTE_MS = 60_000;
const FAILURE = { type: "order", key: "1", consumer: "billing", error: "no such customer" };
const REASON = "NOT_CONSUMED: billing: no such customer";

function orders(confirm: { onTimeout?: "resend" | "fail" | "alert"; consumers?: readonly string[] } = {}) {
  return [messageType("order", { topic: "orders", confirm: { withinMs: MINUTE_MS, ...confirm } })];
}

/** Defines the cases. */
export function defineConfirmCases(service: RelayTestService): void {
  const bench = useRuleBench(service);
  const outboxOf = (types: ReturnType<typeof orders> = []): Outbox =>
    createOutbox({ database: bench.database.connect(), types });

  async function row(key: string): Promise<Readonly<Record<string, unknown>>> {
    const [found = {}] = await bench.database.sql(
      `SELECT state AS state, retry_count AS retries, fail_reason AS reason, message_id AS receipt, next_retry_at AS due FROM local_message WHERE message_key = '${key}'`,
    );
    return { ...found, state: Number(found["state"]), retries: Number(found["retries"]) };
  }

  const insert = (...keys: string[]) => bench.database.insert(keys.map((key) => ({ key, type: "order" })));

  it("takes a confirmation that comes before the relay has written `sent`, and sends it no more", async () => {
    const outbox = outboxOf();
    const confirming: Promise<unknown>[] = [];
    const { relay, broker } = bench.relay({
      broker: {
        outcome: ({ type, key }) => void confirming.push(outbox.confirm([{ type, key }])),
      },
      relay: { types: orders() },
    });
    await insert("1", "2");
    await relay.tick();
    expect(await Promise.all(confirming)).toEqual([[{ status: "consumed" }], [{ status: "consumed" }]]);
    await bench.clock.advance(2 * MINUTE_MS);
    await relay.tick();
    expect(keysOf(broker.published())).toEqual(["1", "2"]);
    expect(await bench.database.states()).toEqual({ [STATE.consumed]: 2 });
  });

  it("keeps what is said of a message that is not there, but not in a transaction of the caller's", async () => {
    const outbox = outboxOf();
    const kept = async () => {
      const store = bench.database.connect().reconcileStore({ layout: bench.database.connect().defaultLayout });
      const list = await store.view((view) => view.unknownConfirmations(10));
      await store.close();
      return list.map(({ error, key, times }) => [key, error, times]);
    };
    await insert("1");
    const here = { type: "order", key: "1" };
    const unknown = { type: "order", key: "2", error: "no such customer" };
    expect(await outbox.confirm([here, unknown, unknown])).toEqual([
      { status: "consumed" },
      { status: "unknown", kept: true },
      { status: "unknown", kept: true },
    ]);
    expect(await kept()).toEqual([["2", "no such customer", 2]]);
    const theirs = outbox.transaction((tx) => outbox.confirm([{ type: "order", key: "3" }], { tx }));
    expect(await theirs).toEqual([{ status: "unknown" }]);
    expect(await kept()).toEqual([["2", "no such customer", 2]]);
  });

  it("confirms what is there, when what is unknown cannot be kept", async () => {
    await insert("1");
    await bench.database.sql("DROP TABLE local_message_unmatched");
    const [here, unknown] = await outboxOf().confirm(["1", "2"].map((key) => ({ type: "order", key })));
    expect([here, unknown]).toEqual([{ status: "consumed" }, { status: "unknown", kept: false }]);
    expect(await row("1")).toMatchObject({ state: STATE.consumed });
  });

  it("sends again, after a pause, what a consumer reports as failed, and hears of the last attempt only", async () => {
    const types = orders();
    const outbox = outboxOf(types);
    const retry = { maxAttempts: 3, baseMs: 0, maxMs: 0 };
    const { relay, broker } = bench.relay({ relay: { types: [{ ...types[0], name: "order", retry }] } });
    const told: RelayEvents["confirmTimeout"][] = [];
    relay.on("confirmTimeout", (event) => void told.push(event));
    await insert("1");
    for (const attempt of [1, 2]) {
      await relay.tick();
      expect(broker.published().at(-1)?.attempt).toBe(attempt);
      expect(await outbox.confirm([{ ...FAILURE, attempt: attempt - 1 }])).toEqual([{ status: "outdated" }]);
      expect(await outbox.confirm([{ ...FAILURE, attempt }])).toEqual([{ status: "reported" }]);
      await bench.clock.advance(MINUTE_MS);
      await relay.tick();
      expect(await row("1")).toMatchObject({ retries: attempt, reason: REASON });
    }
    expect(told).toMatchObject([
      { action: "resend", reason: REASON },
      { action: "resend", reason: REASON },
    ]);
  });

  it.each(["fail", "alert"] as const)("does with a reported failure what the type says: %s", async (onTimeout) => {
    const types = orders({ onTimeout });
    const { relay } = bench.relay({ relay: { types } });
    const told: string[] = [];
    relay.on("confirmTimeout", ({ action }) => void told.push(action));
    await insert("1");
    await relay.tick();
    await outboxOf(types).confirm([FAILURE]);
    await bench.clock.advance(MINUTE_MS);
    await relay.tick();
    const state = onTimeout === "fail" ? STATE.failed : STATE.sent;
    expect(await row("1")).toMatchObject({ state, reason: REASON });
    expect(told).toEqual([onTimeout]);
    expect(await outboxOf(types).confirm([{ type: "order", key: "1" }])).toEqual([{ status: "consumed" }]);
  });

  it("consumes messages of which three consumers confirm each one at once, in any order", async () => {
    const consumers = ["billing", "mail", "stock"];
    const types = orders({ consumers });
    const keys = Array.from({ length: 120 }, (_, index) => `k${String(index).padStart(3, "0")}`);
    await insert(...keys);
    const { relay } = bench.relay({ relay: { types } });
    await relay.tick();
    const confirming = consumers.map(async (consumer, turn) => {
      const outbox = outboxOf(types);
      const order = keys.map((_, index) => keys[(index * 7 + turn * 41) % keys.length] as string);
      const last: string[] = [];
      for (let from = 0; from < order.length; from += 24) {
        const part = order.slice(from, from + 24);
        const results = await outbox.confirm(part.map((key) => ({ type: "order", key, consumer })));
        last.push(...part.filter((_, index) => results[index]?.status === "consumed"));
      }
      return last;
    });
    // The last of the three is the one that is told so.
    expect((await Promise.all(confirming)).flat().sort()).toEqual(keys);
    expect(await bench.database.states()).toEqual({ [STATE.consumed]: keys.length });
  });

  describe("in a transaction of the user's", () => {
    it("is there if and only if that commits", async () => {
      const outbox = outboxOf();
      await insert("1", "2");
      const changedMind = outbox.transaction(async (tx) => {
        await outbox.confirm([{ type: "order", key: "1" }], { tx });
        throw new Error("changed my mind");
      });
      await expect(changedMind).rejects.toThrow("changed my mind");
      await outbox.transaction((tx) => outbox.confirm([{ type: "order", key: "2" }], { tx }));
      expect([(await row("1"))["state"], (await row("2"))["state"]]).toEqual([STATE.pending, STATE.consumed]);
    });

    it("is not committed when its await is forgotten", async () => {
      const outbox = outboxOf();
      await insert("1");
      const forgotten = outbox.transaction((tx) => {
        void outbox.confirm([{ type: "order", key: "1" }], { tx }).catch(() => undefined);
        return Promise.resolve();
      });
      await expect(forgotten).rejects.toThrow(MissingAwaitError);
      expect((await row("1"))["state"]).toBe(STATE.pending);
    });

    // SQLite has one writer: its transactions take turns from their beginning on.
    if (service === "sqlite") return;
    it("counts what was confirmed after its snapshot, or is told to begin anew", async () => {
      const types = orders({ consumers: ["billing", "stock"] });
      const [billing, stock] = [outboxOf(types), outboxOf(types)];
      await insert("1");
      const order = { type: "order", key: "1" };
      const look = "SELECT COUNT(*) AS n FROM local_message_confirmation";
      const late = stock.transaction(async (tx) => {
        // MySQL has this level by itself.
        if (service === "postgres") await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
        await tx.query(look);
        expect(await billing.confirm([{ ...order, consumer: "billing" }])).toMatchObject([{ status: "waiting" }]);
        return await stock.confirm([{ ...order, consumer: "stock" }], { tx });
      });
      if (service === "postgres") await expect(late).rejects.toThrow(DatabaseConflictError);
      else expect(await late).toEqual([{ status: "consumed" }]);
      expect(await stock.confirm([{ ...order, consumer: "stock" }])).toEqual([{ status: "consumed" }]);
      expect(await bench.database.states()).toEqual({ [STATE.consumed]: 1 });
    });
  });

  it("refuses what cannot be meant, and says what can", async () => {
    const outbox = outboxOf(orders({ consumers: ["billing", "stock"] }));
    const message = { type: "order", key: "1" };
    const refused: [unknown, new (text: string) => Error, string][] = [
      [message, InvalidMessageError, "says no consumer; the message type names billing, stock"],
      [{ ...message, consumer: "mail" }, InvalidMessageError, 'says consumer: "mail"'],
      [{ ...message, consumers: ["billing"] }, ConfigurationError, 'did you mean "consumer"?'],
      [{ type: "order" }, InvalidMessageError, "key must be a string"],
      [{ ...FAILURE, error: new Error("no") }, InvalidMessageError, "error must be a string"],
      [{ ...FAILURE, attempt: "1" }, InvalidMessageError, "attempt must be a whole number"],
      ["order:1", ConfigurationError, "a confirmation is { type, key"],
    ];
    for (const [given, kind, text] of refused) {
      const confirming = outbox.confirm([given as typeof message]);
      await expect(confirming).rejects.toThrow(kind);
      await expect(confirming).rejects.toThrow(text);
    }
    // A single one, and a transaction in front of it, as earlier versions took them.
    for (const args of [[message], [{ query: () => undefined }, [message]]]) {
      await expect(outbox.confirm(...(args as unknown as [[]]))).rejects.toThrow("outbox.confirm takes a list of");
    }
    await expect(outbox.confirm([], { tx: undefined })).rejects.toThrow(TransactionRequiredError);
    expect(await outbox.confirm([])).toEqual([]);
  });
}
