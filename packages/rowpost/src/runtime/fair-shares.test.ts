import { expect, test } from "vitest";
import { createFairShares, type FairShares } from "./fair-shares.ts";

/** Takes one place for each key in turn, until none may take any more. */
function fill(shares: FairShares, ...keys: string[]): void {
  let taken = true;
  while (taken) {
    taken = false;
    for (const key of keys) {
      if (shares.free(key) === 0) continue;
      shares.take(key, 1);
      taken = true;
    }
  }
}

test("one destination alone gets half of the capacity, at once or one by one", () => {
  const shares = createFairShares({ capacity: 128 });
  expect(shares.free("a")).toBe(64);
  fill(shares, "a");
  expect([shares.used, shares.usedBy("a"), shares.free("a")]).toEqual([64, 64, 0]);
});

test("a hung destination leaves the other half, of which many others use nearly all", () => {
  const shares = createFairShares({ capacity: 128 });
  shares.take("hung", 64);
  expect(shares.free("b")).toBe(32);
  fill(shares, "b", "c", "d", "e", "f", "g", "h");
  expect(shares.used - shares.usedBy("hung")).toBe(56);
});

test("k destinations that fill up together get 1/(k+1) each and leave as much", () => {
  for (const count of [1, 2, 3, 7]) {
    const shares = createFairShares({ capacity: 240 });
    const keys = Array.from({ length: count }, (_, index) => String(index));
    fill(shares, ...keys);
    for (const key of keys) expect(shares.usedBy(key)).toBe(240 / (count + 1));
    expect(240 - shares.used).toBe(240 / (count + 1));
  }
});

test("a destination that holds nothing can take the last free place", () => {
  const shares = createFairShares({ capacity: 2 });
  shares.take("hung", 1);
  expect([shares.free("hung"), shares.free("b")]).toEqual([0, 1]);
});

test("what is given back is free again, and what took more than its share leaves less than nothing", () => {
  const shares = createFairShares({ capacity: 100 });
  shares.take("large", 150);
  expect([shares.free("large"), shares.free("b"), shares.used]).toEqual([0, 0, 150]);
  shares.giveBack("large", 120);
  expect([shares.free("large"), shares.free("b"), shares.usedBy("large")]).toEqual([20, 35, 30]);
  shares.giveBack("large", 30);
  expect([shares.used, shares.usedBy("large"), shares.free("large")]).toEqual([0, 0, 50]);
});
