import { expect, test } from "vitest";
import { crc32c } from "./crc32c.ts";

/** The first is the common check value; the others are from RFC 3720, B.4. */
test.each([
  ["123456789", Buffer.from("123456789"), 0xe3_06_92_83],
  ["32 zeros", Buffer.alloc(32), 0x8a_91_36_aa],
  ["32 ones", Buffer.alloc(32, 0xff), 0x62_a8_ab_43],
  ["0 to 31", Buffer.from(Array.from({ length: 32 }, (_, index) => index)), 0x46_dd_79_4e],
  ["nothing", Buffer.alloc(0), 0],
])("%s", (_, bytes, sum) => {
  expect(crc32c(bytes, 0, bytes.length)).toBe(sum);
  // At any offset, whatever surrounds it.
  const inside = Buffer.concat([Buffer.from("abc"), bytes, Buffer.from("de")]);
  expect(crc32c(inside, 3, 3 + bytes.length)).toBe(sum);
});
