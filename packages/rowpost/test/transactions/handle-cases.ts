/**
 * The cases that hold for every handle: defined once, run for each driver and ORM on each server.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import {
  createOutbox,
  DuplicateMessageError,
  migrate,
  type NewMessage,
  TransactionRequiredError,
} from "../../src/index.ts";
import type { EncodedMessage } from "../../src/outbox/message-writer.ts";
import type { Executor } from "../../src/transactions/executor.ts";
import { type Handles, Rollback, rolledBackUnder } from "./handles.ts";

/** Rows as another connection sees them. */
export interface Onlooker {
  orders(): Promise<string[]>;
  keys(): Promise<string[]>;
}

/** Where the cases run. */
export interface CasePlace {
  readonly database: Database;
  readonly onlooker: Onlooker;
}

export interface CaseOptions {
  readonly place: () => CasePlace;
  readonly open: () => Promise<Handles>;
  /**
   * Statements that this handle has sent so far, by the server's or driver's own count, the
   * counting included as one.
   */
  readonly countStatements: (tx: unknown) => Promise<number>;
  /** Statements of one enqueue: 1, and what it takes to ask whether there is a transaction. */
  readonly statementsPerEnqueue: number;
}

/** Makes the tables of a place: that of the messages, and one for business rows. */
export async function createTables(database: Database): Promise<void> {
  await migrate(database, { layout: database.defaultLayout });
  await database
    .transaction(async (tx) => {
      await tx.query("CREATE TABLE orders (id VARCHAR(64) PRIMARY KEY)");
    })
    .catch((error: unknown) => {
      // On MySQL the CREATE commits and so ends the transaction, which is reported.
      if (database.dialect !== "mysql") throw error;
    });
}

let serial = 0;

function message(change: Partial<NewMessage> = {}): NewMessage {
  serial += 1;
  return {
    type: "order.created",
    key: `key-${serial}`,
    topic: "orders",
    body: { text: "it's ? and $1 and \\", serial },
    ...change,
  };
}

function encoded(key: string): EncodedMessage {
  return {
    type: "order.created",
    key,
    topic: "orders",
    body: "{}",
    headers: null,
    contentType: null,
    orderingKey: null,
    delayMs: null,
    deliverAtMs: null,
    createdBy: "test",
  };
}

/** A promise, and what resolves it. */
export function signal(): { readonly given: Promise<void>; readonly give: () => void } {
  let give = (): void => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

/** Defines the tests of one kind of handle. */
export function defineHandleCases(name: string, options: CaseOptions): void {
  describe(name, () => {
    let handles: Handles;
    beforeAll(async () => {
      handles = await options.open();
    });
    afterAll(async () => {
      await handles?.close();
    });

    test("commit: the business row and the message appear together", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      const sent = message({ headers: { source: "a ? b" }, orderingKey: "customer ?", delayMs: 60_000 });
      await handles.transaction(async (tx, insertOrder) => {
        await insertOrder(sent.key);
        expect(await outbox.enqueue(tx, sent)).toBe("enqueued");
        expect(await onlooker.keys(), "not before the commit").not.toContain(sent.key);
      });
      expect(await onlooker.keys()).toContain(sent.key);
      expect(await onlooker.orders()).toContain(sent.key);
    });

    test("rollback: neither is there", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      const lost = [message(), message()];
      const [{ key }] = lost as [NewMessage, NewMessage];
      await expect(
        handles.transaction(async (tx, insertOrder) => {
          await insertOrder(key);
          await outbox.enqueue(tx, lost);
          throw new Rollback();
        }),
      ).rejects.toBeInstanceOf(Rollback);
      expect(await onlooker.keys()).not.toContain(key);
      expect(await onlooker.orders()).not.toContain(key);
    });

    test("a duplicate throws, leaves none of its call, and the transaction goes on", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      const [first, beside, last] = [message(), message(), message()];
      await handles.transaction(async (tx, insertOrder) => {
        await outbox.enqueue(tx, first);
        await expect(outbox.enqueue(tx, [beside, first])).rejects.toBeInstanceOf(DuplicateMessageError);
        await insertOrder(last.key);
        expect(await outbox.enqueue(tx, [first, last], { onDuplicate: "ignore" })).toEqual(["duplicate", "enqueued"]);
      });
      const keys = await onlooker.keys();
      expect([first, beside, last].map(({ key }) => keys.filter((each) => each === key).length)).toEqual([1, 0, 1]);
      expect(await onlooker.orders()).toContain(last.key);
    });

    test("an array is one statement", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      const messages = Array.from({ length: 30 }, () => message());
      let statements = 0;
      await handles.transaction(async (tx) => {
        // The first time an ORM may be asked for more, such as the server's version.
        await outbox.enqueue(tx, message());
        const before = await options.countStatements(tx);
        await outbox.enqueue(tx, messages);
        statements = (await options.countStatements(tx)) - before - 1;
      });
      expect(statements).toBe(options.statementsPerEnqueue);
      const keys = new Set(await onlooker.keys());
      expect(messages.every(({ key }) => keys.has(key))).toBe(true);
    });

    test("several calls at once in one transaction are all there", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      const messages = Array.from({ length: 12 }, () => message());
      // Prisma ends its transaction on MySQL 8 and 9 when several ask at once: all are refused.
      if (name === "prisma" && options.statementsPerEnqueue === 2 && database.dialect === "mysql") return;
      await handles.transaction(async (tx) => {
        const [first, ...others] = messages as [NewMessage, ...NewMessage[]];
        await outbox.enqueue(tx, first);
        const ignoring = outbox.enqueue(tx, [first, message()], { onDuplicate: "ignore" });
        await Promise.all([ignoring, ...others.map((each) => outbox.enqueue(tx, each))]);
      });
      expect(await onlooker.keys()).toEqual(expect.arrayContaining(messages.map(({ key }) => key)));
    });

    test("what is no transaction is refused, and no row is left", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      const refused = message();
      if (handles.root !== undefined) {
        await expect(outbox.enqueue(handles.root, refused)).rejects.toBeInstanceOf(TransactionRequiredError);
      }
      await handles.withoutTransaction?.(async (handle) => {
        await expect(outbox.enqueue(handle, refused)).rejects.toBeInstanceOf(TransactionRequiredError);
        await expect(outbox.enqueue(handle, [refused, message()])).rejects.toBeInstanceOf(TransactionRequiredError);
      });
      await handles.closed?.(async (handle) => {
        await expect(outbox.enqueue(handle, refused)).rejects.toBeInstanceOf(TransactionRequiredError);
      });
      expect(await onlooker.keys()).not.toContain(refused.key);
    });

    test("a transaction that ended behind the handle's back is refused, and no row is left (rule: ended-transaction)", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      const late = message();
      const ends = handles.transaction(async (tx) => {
        await database.executor(tx).run({ name: "commit", text: "COMMIT", params: [] });
        await expect(outbox.enqueue(tx, late)).rejects.toBeInstanceOf(TransactionRequiredError);
      });
      // Some drivers complain about their own COMMIT then, some do not notice.
      await ends.catch((error: unknown) => {
        if (error instanceof Error && error.name === "AssertionError") throw error;
      });
      expect(await onlooker.keys()).not.toContain(late.key);
    });

    test("a handle that was kept after its transaction is refused, and no row is left", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      const late = message();
      let kept: unknown;
      await handles.transaction(async (tx) => {
        kept = tx;
      });
      const refused = await outbox.enqueue(kept, late).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(TransactionRequiredError);
      expect(String(refused)).toContain("await");
      expect(await onlooker.keys()).not.toContain(late.key);
    });

    test("an enqueue that nobody awaits before the commit is there, or is refused and says await", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      for (let round = 0; round < 10; round += 1) {
        const late = message();
        let outcome: Promise<unknown> = Promise.resolve();
        await handles.transaction(async (tx) => {
          outcome = outbox.enqueue(tx, late).catch((error: unknown) => error);
        });
        const answer = await outcome;
        if (answer !== "enqueued") {
          expect(answer).toBeInstanceOf(TransactionRequiredError);
          expect(String(answer)).toContain("await");
        }
        expect((await onlooker.keys()).includes(late.key)).toBe(answer === "enqueued");
      }
    });

    test("an enqueue that nobody awaits before a rollback leaves no message, in no transaction (rule: ended-transaction)", async () => {
      const { database, onlooker } = options.place();
      const outbox = createOutbox({ database });
      for (let round = 0; round < 20; round += 1) {
        const late = message();
        const call = (tx: unknown): Promise<unknown> => outbox.enqueue(tx, late);
        const { outcome } = await rolledBackUnder(handles, { key: late.key, round, call });
        const answer = await outcome;
        if (answer !== "enqueued") {
          expect(answer).toBeInstanceOf(TransactionRequiredError);
          expect(String(answer)).toContain("await");
        }
        expect(await onlooker.keys()).not.toContain(late.key);
      }
    });

    test.each([
      ["in no transaction", false],
      ["in the next one on the connection", true],
    ])(
      "an INSERT that arrives behind the rollback, %s, is refused, and no row is left (rule: ended-transaction)",
      async (_, isNext) => {
        const { database, onlooker } = options.place();
        const writer = database.messageWriter({ layout: database.defaultLayout });
        const late = encoded(message().key);
        const arrived = signal();
        const rolledBack = signal();
        let outcome: Promise<unknown> = Promise.resolve();
        const first = handles.transaction(async (tx) => {
          const executor = database.executor(tx);
          // Who knows sends in the same turn, so that nothing comes between; MariaDB looks besides.
          const known = executor.inTransaction?.();
          await known;
          const inTurn = known === true || executor.pipelines === true;
          if (inTurn && (isNext || database.dialect !== "mysql")) return;
          const slow: Executor = {
            kind: "slow",
            inTransaction: () => executor.inTransaction?.(),
            run: async (statement) => {
              if (statement.name.startsWith("insert")) {
                arrived.give();
                await rolledBack.given;
              }
              return await executor.run(statement);
            },
          };
          outcome = writer.insert(slow, [late], { duplicates: "throw" }).catch((error: unknown) => error);
          await arrived.given;
          throw new Rollback();
        });
        await first.catch((error: unknown) => expect(error).toBeInstanceOf(Rollback));
        if (isNext) {
          await handles.transaction(async () => {
            rolledBack.give();
            await outcome;
          });
        }
        rolledBack.give();
        expect(await outcome).not.toEqual(["enqueued"]);
        expect(await onlooker.keys()).not.toContain(late.key);
      },
    );
  });
}
