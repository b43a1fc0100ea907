import { expect, test } from "vitest";
import { USER_STATEMENT } from "./own-transaction.ts";
import { isPrepared } from "./prepare.ts";

const connection = {};

/** An INSERT of that many rows with nine values each. */
function insertOf(rows: number, name = "insertMessages") {
  const params = Array.from({ length: rows * 9 }, () => "x");
  return { name, text: `INSERT INTO t VALUES ${Array(rows).fill("(?)").join(", ")}`, params };
}

test("few parameters: prepared at once; without any, or of the user's: never", () => {
  expect(isPrepared(insertOf(1), connection)).toBe(true);
  expect(isPrepared({ name: "begin", text: "BEGIN", params: [] }, connection)).toBe(false);
  expect(isPrepared(insertOf(1, USER_STATEMENT), connection)).toBe(false);
});

test("none on a connection on which the user has sent USE", () => {
  const other = {};
  expect(isPrepared({ name: USER_STATEMENT, text: "/* tenant */ use `b`", params: [] }, other)).toBe(false);
  expect([isPrepared(insertOf(1), other), isPrepared(insertOf(1), connection)]).toEqual([false, true]);
});

test("a long statement is prepared from its third time on, two texts of a process at most, and none of more than 1,000 parameters", () => {
  const times = (rows: number, count: number) =>
    Array.from({ length: count }, () => isPrepared(insertOf(rows), connection));
  // Varying sizes never qualify and are forgotten, so they cannot fill the server.
  for (let rows = 3; rows <= 90; rows++) expect(isPrepared(insertOf(rows), connection)).toBe(false);
  expect(times(200, 5)).toEqual([false, false, false, false, false]);
  expect(times(100, 4)).toEqual([false, false, true, true]);
  expect(times(50, 4)).toEqual([false, false, true, true]);
  expect(times(40, 5)).toEqual([false, false, false, false, false]);
  expect(times(100, 1)).toEqual([true]);
});
