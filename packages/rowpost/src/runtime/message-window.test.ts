import { expect, test } from "vitest";
import { createMessageWindow } from "./message-window.ts";

test("a window has room for a number of messages and of bytes", () => {
  const window = createMessageWindow({ messages: 3, bytes: 100 });
  expect([window.take(40), window.take(61), window.take(60), window.take(0), window.take(0)]).toEqual([
    true,
    false,
    true,
    true,
    false,
  ]);
});

test("a message larger than the window goes alone", () => {
  const window = createMessageWindow({ messages: 3, bytes: 100 });
  expect(window.take(500)).toBe(true);
  expect(window.take(1)).toBe(false);
  window.release(500);
  expect(window.take(1)).toBe(true);
  expect(window.take(500)).toBe(false);
});

test("those who wait are called in their order, once, and as long as there is room", () => {
  const window = createMessageWindow({ messages: 1, bytes: 100 });
  const called: string[] = [];
  window.take(10);
  window.onRoom(() => called.push(`first ${window.take(10)}`));
  window.onRoom(() => called.push(`second ${window.take(10)}`));
  window.release(10);
  expect(called).toEqual(["first true"]);
  window.release(10);
  window.release(10);
  expect(called).toEqual(["first true", "second true"]);
});

test("one that has no use for the room leaves it to the next", () => {
  const window = createMessageWindow({ messages: 1, bytes: 100 });
  const called: string[] = [];
  window.take(10);
  window.onRoom(() => called.push("left"));
  window.onRoom(() => called.push(`stayed ${window.take(10)}`));
  window.release(10);
  expect(called).toEqual(["left", "stayed true"]);
});

test("one that stopped waiting is not called, not even by another one's callback", () => {
  const window = createMessageWindow({ messages: 1, bytes: 100 });
  const called: string[] = [];
  const second = (): void => void called.push("second");
  window.take(10);
  window.onRoom(() => window.stopWaiting(second));
  window.onRoom(second);
  window.release(10);
  expect(called).toEqual([]);
});
