import { expect, it } from "vitest";
import { behindPrefix } from "./prefix-range.ts";

it("finds the first text behind a prefix, past surrogates and the last code point", () => {
  expect(behindPrefix("order-")).toBe("order.");
  expect(behindPrefix("a\u{d7ff}")).toBe("a\u{e000}");
  expect(behindPrefix("a\u{10ffff}\u{10ffff}")).toBe("b");
  expect(behindPrefix("\u{10ffff}")).toBeUndefined();
  expect(behindPrefix("")).toBeUndefined();
});
