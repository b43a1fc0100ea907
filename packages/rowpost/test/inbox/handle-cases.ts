/** What holds for every transaction handle: defined once, run for each driver and ORM. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { createInbox, type Duplicate, type Handled } from "../../src/inbox/index.ts";
import { TransactionRequiredError } from "../../src/index.ts";
import type { Handles } from "../transactions/handles.ts";

/** Where the cases run. */
export interface InboxPlace {
  readonly database: Database;
  /** Ids of the business rows, as another connection sees them. */
  orders(): Promise<string[]>;
  /** Keys of the handled messages, as another connection sees them. */
  keys(): Promise<string[]>;
}

let serial = 0;

function nextKey(): string {
  serial += 1;
  return `it's ? $1 \\ ${serial}`;
}

class Failed extends Error {}

export function defineInboxHandleCases(
  name: string,
  { open, place }: { readonly place: () => InboxPlace; readonly open: () => Promise<Handles> },
): void {
  describe(name, () => {
    let handles: Handles;
    beforeAll(async () => {
      handles = await open();
    });
    afterAll(async () => {
      await handles?.close();
    });

    const handle = (
      tx: unknown,
      key: string,
      work: (tx: unknown) => Promise<unknown>,
    ): Promise<Handled<unknown> | Duplicate> =>
      createInbox({ database: place().database }).handle(
        tx,
        { consumer: "points", message: { type: "order.paid", key, id: "orders-0@7", attempt: 2, topic: "orders" } },
        work,
      );

    test("effect and identity appear together, and a second delivery has none", async () => {
      const key = nextKey();
      await handles.transaction(async (tx, insertOrder) => {
        const first = await handle(tx, key, async () => {
          await insertOrder(key);
          return { points: 7 };
        });
        expect(first).toEqual({
          outcome: "handled",
          consumer: "points",
          type: "order.paid",
          key,
          attempt: 2,
          result: { points: 7 },
        });
        expect(await place().keys(), "not before the commit").not.toContain(key);
      });
      expect(await place().keys()).toContain(key);
      const after = nextKey();
      await handles.transaction(async (tx, insertOrder) => {
        const second = await handle(tx, key, () => expect.unreachable("handled twice"));
        expect(second).toMatchObject({ outcome: "duplicate", key, handledBy: expect.stringMatching(/:\d+$/) });
        const handledAt = (second as Duplicate).handledAt.getTime();
        expect(Math.abs(handledAt - Date.now())).toBeLessThan(600_000);
        // The transaction goes on.
        await insertOrder(after);
      });
      expect(await place().orders()).toEqual(expect.arrayContaining([key, after]));
    });

    test("a handler that throws leaves nothing, although its error is caught and the rest committed", async () => {
      const [kept, lost, later] = [nextKey(), nextKey(), nextKey()];
      await handles.transaction(async (tx, insertOrder) => {
        await insertOrder(kept);
        await expect(
          handle(tx, lost, async () => {
            await insertOrder(lost);
            throw new Failed();
          }),
        ).rejects.toBeInstanceOf(Failed);
        await insertOrder(later);
      });
      const orders = await place().orders();
      expect([kept, lost, later].map((id) => orders.includes(id))).toEqual([true, false, true]);
      expect(await place().keys()).not.toContain(lost);
      await handles.transaction(async (tx, insertOrder) => {
        expect(await handle(tx, lost, () => insertOrder(lost))).toMatchObject({ outcome: "handled" });
      });
      expect(await place().orders()).toContain(lost);
    });

    test("a transaction that is rolled back has handled nothing", async () => {
      const key = nextKey();
      const rolledBack = handles.transaction(async (tx, insertOrder) => {
        await handle(tx, key, () => insertOrder(key));
        throw new Failed();
      });
      await expect(rolledBack).rejects.toBeInstanceOf(Failed);
      expect(await place().keys()).not.toContain(key);
      expect(await place().orders()).not.toContain(key);
    });

    test("a handling inside of another one is part of it", async () => {
      const [outer, inner] = [nextKey(), nextKey()];
      await handles.transaction(async (tx, insertOrder) => {
        const failing = handle(tx, outer, async (within) => {
          await handle(within, inner, () => insertOrder(inner));
          throw new Failed();
        });
        await expect(failing).rejects.toBeInstanceOf(Failed);
        await handle(tx, outer, async (within) => {
          await expect(
            handle(within, inner, async () => {
              throw new Failed();
            }),
          ).rejects.toBeInstanceOf(Failed);
          await insertOrder(outer);
        });
      });
      const orders = await place().orders();
      expect([outer, inner].map((id) => orders.includes(id))).toEqual([true, false]);
    });

    test("two at once in one transaction are refused, and the first goes on", async () => {
      const [first, second] = [nextKey(), nextKey()];
      await handles.transaction(async (tx, insertOrder) => {
        const results = await Promise.allSettled([
          handle(tx, first, () => insertOrder(first)),
          handle(tx, second, () => insertOrder(second)),
        ]);
        expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
        expect(Reflect.get(results[1] ?? {}, "reason")).toBeInstanceOf(TransactionRequiredError);
      });
      const orders = await place().orders();
      expect([first, second].map((id) => orders.includes(id))).toEqual([true, false]);
    });

    test("without a transaction it is refused, and nothing is written", async () => {
      const key = nextKey();
      const refused = async (tx: unknown): Promise<void> => {
        const handling = handle(tx, key, () => expect.unreachable("handled without a transaction"));
        await expect(handling).rejects.toBeInstanceOf(TransactionRequiredError);
      };
      await handles.withoutTransaction?.(refused);
      await handles.closed?.(refused);
      let ended: unknown;
      await handles.transaction(async (tx) => {
        ended = tx;
      });
      await refused(ended);
      expect(await place().keys()).not.toContain(key);
    });
  });
}
