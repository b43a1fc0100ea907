import { expect, test } from "vitest";
import { cut } from "./view.ts";

test("a line is cut by the columns that it takes, colors take none", () => {
  expect(cut("abcdef", 4)).toBe("abcd");
  expect(cut("abc", 4)).toBe("abc");
  expect(cut("待发送 3", 5)).toBe("待发");
  expect(cut("\u001b[32msent 已发送\u001b[39m 5", 7)).toBe("\u001b[32msent 已\u001b[0m");
  expect(cut("\u001b[32msent\u001b[39m", 4)).toBe("\u001b[32msent\u001b[39m");
});
