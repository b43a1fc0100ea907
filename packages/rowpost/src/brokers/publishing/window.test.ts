import { describe, expect, test } from "vitest";
import { createWindow } from "./window.ts";

describe("one destination", () => {
  test("has room for a number of loads and of bytes", () => {
    const window = createWindow({ loads: 3, bytes: 100 });
    const takes = [40, 61, 60, 0, 0].map((bytes) => window.take("a", bytes));
    expect(takes).toEqual([true, false, true, true, false]);
  });

  test("a load larger than the window goes alone", () => {
    const window = createWindow({ loads: 3, bytes: 100 });
    expect(window.take("a", 500)).toBe(true);
    expect(window.take("a", 1)).toBe(false);
    window.giveBack("a", 500);
    expect(window.take("a", 1)).toBe(true);
    expect(window.take("a", 500)).toBe(false);
  });

  test("those who wait are called in their order, once, and as long as there is room", () => {
    const window = createWindow({ loads: 1, bytes: 100 });
    const called: string[] = [];
    window.take("a", 10);
    window.onRoom("a", 10, () => called.push(`first ${window.take("a", 10)}`));
    window.onRoom("a", 10, () => called.push(`second ${window.take("a", 10)}`));
    window.giveBack("a", 10);
    expect(called).toEqual(["first true"]);
    window.giveBack("a", 10);
    window.giveBack("a", 10);
    expect(called).toEqual(["first true", "second true"]);
  });

  test("a large load that waits is not overtaken by smaller ones, new or old", () => {
    const window = createWindow({ loads: 10, bytes: 100 });
    const called: string[] = [];
    window.take("a", 60);
    window.onRoom("a", 500, () => called.push(`large ${window.take("a", 500)}`));
    window.onRoom("a", 10, () => called.push(`small ${window.take("a", 10)}`));
    expect(window.take("a", 10)).toBe(false);
    expect(window.take("b", 10)).toBe(true);
    window.giveBack("a", 60);
    expect(called).toEqual(["large true"]);
    window.giveBack("a", 500);
    expect(called).toEqual(["large true", "small true"]);
  });

  test("one that has no use for the room leaves it to the next", () => {
    const window = createWindow({ loads: 1, bytes: 100 });
    const called: string[] = [];
    window.take("a", 10);
    window.onRoom("a", 10, () => called.push("left"));
    window.onRoom("a", 10, () => called.push(`stayed ${window.take("a", 10)}`));
    window.giveBack("a", 10);
    expect(called).toEqual(["left", "stayed true"]);
  });

  test("one that stopped waiting is not called, not even by another one's callback, and lets those behind it go on", () => {
    const window = createWindow({ loads: 2, bytes: 100 });
    const called: string[] = [];
    const second = (): void => void called.push("second");
    const large = (): void => void called.push("large");
    window.take("a", 10);
    window.take("a", 10);
    window.onRoom("a", 10, () => window.stopWaiting(second));
    window.onRoom("a", 10, second);
    window.giveBack("a", 10);
    expect(called).toEqual([]);
    window.take("a", 10);
    window.giveBack("a", 10);
    window.onRoom("a", 200, large);
    window.onRoom("a", 10, () => called.push("small"));
    window.stopWaiting(large);
    expect(called).toEqual(["small"]);
  });
});

describe("several destinations", () => {
  test("a hung one keeps its width and leaves as much to the others", () => {
    const window = createWindow({ loads: 32, bytes: 1_000 });
    let hung = 0;
    while (window.take("hung", 1)) hung += 1;
    expect(hung).toBe(32);
    let others = 0;
    while (["b", "c", "d", "e", "f", "g", "h"].filter((each) => window.take(each, 1)).length > 0) others += 1;
    expect(others).toBeGreaterThan(0);
    expect(window.take("never seen", 1)).toBe(true);
  });

  test("one that waits for room of its own kind is passed by those of others", () => {
    const window = createWindow({ loads: 1, bytes: 100 });
    const called: string[] = [];
    window.take("hung", 10);
    window.onRoom("hung", 10, () => called.push("hung"));
    window.take("b", 10);
    window.onRoom("b", 10, () => called.push("b"));
    window.giveBack("b", 10);
    expect(called).toEqual(["b"]);
  });

  test("large loads of one leave the bytes of another alone", () => {
    const window = createWindow({ bytes: 100 });
    expect([window.take("a", 100), window.take("a", 1), window.take("b", 50), window.take("b", 40)]).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect(window.take("c", 400)).toBe(true);
  });
});
