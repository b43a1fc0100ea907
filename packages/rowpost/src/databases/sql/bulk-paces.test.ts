import { describe, expect, it } from "vitest";
import { createPaces } from "./bulk-paces.ts";

describe("paces of bulk operations", () => {
  it("lets each wait for its own rate, and none for another's", () => {
    let now = 0;
    const paces = createPaces(() => now);
    const running = ["slow", "quick"];
    expect(paces.next(running)).toBe("slow");
    paces.begin("slow", 100).rest(500);
    expect(paces.next(running)).toBe("quick");
    paces.begin("quick", 10_000).rest(500);
    expect(paces.next(running)).toBe("quick");
    expect(paces.waitMs("quick")).toBe(50);
    now = 50;
    expect(paces.waitMs("quick")).toBe(0);
    expect(paces.waitMs("slow")).toBe(4_950);
  });

  it("takes turns when batches last longer than their rates ask for", () => {
    let now = 0;
    const paces = createPaces(() => now);
    const turns = Array.from({ length: 4 }, () => {
      const id = paces.next(["a", "b"]) ?? "";
      const pace = paces.begin(id, 10_000);
      now += 1_000;
      pace.rest(500);
      return id;
    });
    expect(turns).toEqual(["a", "b", "a", "b"]);
  });

  it("forgets what is over, so that it begins anew when it is resumed", () => {
    const paces = createPaces(() => 0);
    paces.begin("a", 1).rest(500);
    expect(paces.next(["b"])).toBe("b");
    expect(paces.waitMs("a")).toBe(0);
  });
});
