import { expect, test } from "vitest";
import { createShared } from "./shared-answer.ts";

test("one load serves all who ask meanwhile, however long it takes, and is kept from its end on", async () => {
  let now = 0;
  const waiting: ((answer: number) => void)[] = [];
  const ask = createShared(
    2_000,
    () => new Promise<number>((resolve) => waiting.push(resolve)),
    () => now,
  );
  const first = ask();
  now = 10_000;
  const second = ask();
  expect(waiting).toHaveLength(1);
  waiting[0]?.(7);
  expect(await Promise.all([first, second])).toEqual([7, 7]);
  now = 11_999;
  expect(await ask()).toBe(7);
  now = 12_000;
  void ask();
  expect(waiting).toHaveLength(2);
});

test("a failure is told to all who asked, and not kept", async () => {
  let loads = 0;
  const ask = createShared(2_000, () => {
    loads += 1;
    return loads === 1 ? Promise.reject(new Error("away")) : Promise.resolve(loads);
  });
  await expect(Promise.all([ask(), ask()])).rejects.toThrow("away");
  expect(await ask()).toBe(2);
});
