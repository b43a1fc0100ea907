import { describe, expect, test } from "vitest";
import { murmur2, partitionOf } from "./partition.ts";

const OF_KAFKA: readonly (readonly [key: string, hash: number])[] = [
  ["21", -973_932_308],
  ["foobar", -790_332_482],
  ["a-little-bit-long-string", -985_981_536],
  ["a-little-bit-longer-string", -1_486_304_829],
  ["lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971],
  ["abc", 479_470_107],
];

describe("the partition of a key", () => {
  test.each(OF_KAFKA)("the hash of %s is Kafka's", (key, hash) => {
    expect(murmur2(Buffer.from(key))).toBe(hash);
  });

  test("is in range and the same every time", () => {
    for (const count of [1, 2, 3, 7, 50]) {
      for (let number = 0; number < 200; number += 1) {
        const key = Buffer.from(`订单-${number}`);
        const partition = partitionOf(key, count);
        expect(partition).toBe(partitionOf(Buffer.from(key), count));
        expect(partition).toBeGreaterThanOrEqual(0);
        expect(partition).toBeLessThan(count);
      }
    }
  });

  test("is that of a negative hash without its sign, as the Java producer has it", () => {
    expect(partitionOf(Buffer.from("21"), 10)).toBe((-973_932_308 & 0x7f_ff_ff_ff) % 10);
  });
});
