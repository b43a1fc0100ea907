/** The order in which transactions of consumers begin, and the log of the waiting. */
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Transaction } from "../../transactions/executor.ts";
import { createPoolShare } from "./pool-share.ts";

/** A pool of this size; transactions end when `end` is called. */
function shareOf(size: number | undefined) {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const share = createPoolShare({
    poolSize: () => Promise.resolve(size),
    transaction: (work) => work({} as Transaction),
  });
  return {
    share,
    begun,
    begin: async (...names: readonly string[]): Promise<void> => {
      for (const name of names)
        void share.transaction(() => {
          begun.push(name);
          return new Promise<void>((resolve) => ends.push(resolve));
        });
      await setImmediate();
    },
    end: async (): Promise<void> => {
      ends.shift()?.();
      await setImmediate();
    },
  };
}

const about = (lines: string[]) => {
  const told = (line: string, fields?: object): void => void lines.push(`${line} ${JSON.stringify(fields)}`);
  return { topic: "orders", group: "g", logger: { debug: told, info: told, warn: told, error: told } };
};

test.each([
  [undefined, 9],
  [1, 1],
  [2, 1],
  [3, 1],
  [4, 2],
  [10, 5],
])("of a pool of %s, %i begin at once", async (size, most) => {
  const { begin, begun } = shareOf(size);
  await begin(...["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
  expect(begun).toHaveLength(most);
});

test("who has had a turn goes behind those that wait", async () => {
  const { begin, begun, end } = shareOf(4);
  await begin("a", "b", "c", "d");
  await end();
  await begin("a");
  for (let turn = 0; turn < 3; turn += 1) await end();
  expect(begun).toEqual(["a", "b", "c", "d", "a"]);
});

test("a transaction that fails gives its turn to the next one", async () => {
  const { begin, begun, share } = shareOf(2);
  const failed = expect(share.transaction(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  await begin("a");
  await failed;
  expect(begun).toEqual(["a"]);
});

test("says once what waits, and how many connections would do", async () => {
  const { share } = shareOf(4);
  const lines: string[] = [];
  const first = new AbortController();
  await share.join(2, about(lines), first.signal);
  expect(lines).toEqual([]);
  await share.join(4, about(lines), new AbortController().signal);
  expect(lines).toEqual([expect.stringContaining('"pool":4,"atOnce":2,"partitions":6,"raiseBy":8')]);
  first.abort();
  await share.join(1, about(lines), new AbortController().signal);
  expect(lines.at(-1)).toContain('"atOnce":2,"partitions":5');
});

test("of a pool of one connection it says what a handler must not do", async () => {
  const lines: string[] = [];
  await shareOf(1).share.join(1, about(lines), new AbortController().signal);
  expect(lines).toEqual([expect.stringContaining("waits for ever")]);
});
