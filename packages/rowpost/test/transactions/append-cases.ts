/** What holds for `queue.append` on every handle: defined once, run for each driver and ORM. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { TransactionRequiredError } from "../../src/index.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { type Handles, Rollback, rolledBackUnder } from "./handles.ts";

/** Where the cases run. */
export interface AppendCaseOptions {
  readonly database: () => Database;
  readonly open: () => Promise<Handles>;
}

const TOPIC = "orders";
let serial = 0;

/** Defines the tests of one kind of handle. */
export function defineAppendCases(name: string, options: AppendCaseOptions): void {
  describe(`${name}, appends to the queue`, () => {
    let handles: Handles;
    let queue: Queue;
    beforeAll(async () => {
      handles = await options.open();
      queue = createQueue({ database: options.database() });
      await queue.migrate();
      await queue.createTopic({ topic: TOPIC, partitions: 4 });
    });
    afterAll(async () => {
      await queue?.close();
      await handles?.close();
    });

    // It answers nothing behind the end of a transaction: see silent-handle.postgres.test.ts.
    const isSilent = name.includes("postgres.js");
    const expectAdvice = (answer: unknown): void => {
      if (Array.isArray(answer)) return;
      expect(answer).toBeInstanceOf(TransactionRequiredError);
      expect(String(answer)).toContain("await");
    };
    const nextKey = (): string => {
      serial += 1;
      return `${name}-${serial}`;
    };
    const stored = async (key: string): Promise<string[]> =>
      (await queue.search({ topic: TOPIC, key })).messages.map(({ id }) => id);

    test("commit: what was appended is there under the ids that were told, in one partition or in several", async () => {
      const appended = new Map<string, string>();
      await handles.transaction(async (tx, insertOrder) => {
        for (const count of [1, 9]) {
          const keys = Array.from({ length: count }, nextKey);
          await insertOrder(keys[0] ?? "");
          const messages = keys.map((key) => ({
            topic: TOPIC,
            key,
            orderingKey: key,
            body: { text: "it's ? $1 \\", key },
          }));
          for (const [index, id] of (await queue.append(tx, messages)).entries()) appended.set(keys[index] ?? "", id);
        }
      });
      for (const [key, id] of appended) {
        expect(await stored(key)).toEqual([id]);
        expect(await queue.message(TOPIC, id)).toMatchObject({ key, body: { text: "it's ? $1 \\", key } });
      }
      expect(new Set([...appended.values()].map((id) => BigInt(id) % 64n)).size).toBeGreaterThan(1);
    });

    test("rollback, a handle that is kept, and none that is in a transaction: nothing is there", async () => {
      const keys = Array.from({ length: 3 }, nextKey);
      const append = (handle: unknown, key = ""): Promise<unknown> =>
        queue.append(handle, [{ topic: TOPIC, key, body: 1 }]);
      let kept: unknown;
      const rolledBack = handles.transaction(async (tx) => {
        kept = tx;
        await append(tx, keys[0]);
        throw new Rollback();
      });
      await expect(rolledBack).rejects.toBeInstanceOf(Rollback);
      await expect(append(kept, keys[1])).rejects.toBeInstanceOf(TransactionRequiredError);
      await handles.withoutTransaction?.(async (handle) => {
        await expect(append(handle, keys[2])).rejects.toBeInstanceOf(TransactionRequiredError);
      });
      for (const key of keys) expect(await stored(key)).toEqual([]);
    });

    test.each(["known", "new"])(
      "of a %s topic that nobody awaits before a rollback: nothing is there, also behind the next transaction (rule: ended-transaction)",
      async (topicIs) => {
        for (let round = 0; round < 10; round += 1) {
          const key = nextKey();
          const used = topicIs === "known" ? queue : createQueue({ database: options.database() });
          const call = (tx: unknown): Promise<unknown> => used.append(tx, [{ topic: TOPIC, key, body: 1 }]);
          const { outcome } = await rolledBackUnder(handles, { key, round, call });
          if (!isSilent) expectAdvice(await outcome);
          expect(await stored(key)).toEqual([]);
          if (used !== queue) await used.close();
        }
      },
    );

    test("several at once in one transaction are all there", async () => {
      const keys = Array.from({ length: 12 }, nextKey);
      await handles.transaction(async (tx) => {
        await Promise.all(keys.map((key) => queue.append(tx, [{ topic: TOPIC, key, orderingKey: key, body: 1 }])));
      });
      for (const key of keys) expect(await stored(key)).toHaveLength(1);
    });

    test("that nobody awaits before the commit: it is there, or is refused and says await", async () => {
      for (let round = 0; round < 5; round += 1) {
        const key = nextKey();
        let outcome: Promise<unknown> = Promise.resolve();
        await handles.transaction(async (tx) => {
          outcome = queue.append(tx, [{ topic: TOPIC, key, body: 1 }]).catch((error: unknown) => error);
        });
        const answer = isSilent ? undefined : await outcome;
        if (!isSilent) expectAdvice(answer);
        expect(await stored(key)).toEqual(Array.isArray(answer) ? answer : []);
      }
    });
  });
}
