import { describe, expect, it } from "vitest";
import { words as mysql } from "../mysql/words.ts";
import { words as postgres } from "../postgres/words.ts";
import { words as sqlite } from "../sqlite/words.ts";
import { behind, branch, cold, id, joined, part, quoted, spelled } from "./cold.ts";

const place = behind([
  ["a", 1],
  ["b", id("7")],
  ["c", "x"],
]);
const statement = cold(
  "sample",
)`SELECT 1 FROM ${quoted("t_1")} WHERE ${place} AND k IN (${joined(["k", null], ", ")}) LIMIT ${-2}`;

describe("a statement that is written once", () => {
  it("has its values as parameters, in the order of the text", () => {
    expect(spelled(postgres, statement)).toEqual({
      name: "sample",
      text: "SELECT 1 FROM t_1 WHERE (a, b, c) > ($1, $2::bigint, $3) AND k IN ($4, $5) LIMIT $6",
      params: [1, "7", "x", "k", null, -2],
    });
    expect(spelled(sqlite, statement)).toEqual({
      name: "sample",
      text: "SELECT 1 FROM t_1 WHERE (a, b, c) > (?, CAST(? AS INTEGER), ?) AND k IN (?, ?) LIMIT ?",
      params: [1, "7", "x", "k", null, -2],
    });
  });

  it("has numbers in the text on MySQL, and compares rows column by column", () => {
    expect(spelled(mysql, statement)).toEqual({
      name: "sample",
      text: "SELECT 1 FROM `t_1` WHERE a >= 1 AND (a > 1 OR (a = 1 AND (b > ? OR (b = ? AND c > ?)))) AND k IN (?, ?) LIMIT -2",
      params: ["7", "7", "x", "k", null],
    });
  });

  it.each([mysql, postgres, sqlite])("lets nothing but whole numbers into a list of ids", (words) => {
    expect(words.idIn("id", ["1", "-2", "18446744073709551615"])).toContain("18446744073709551615");
    expect(() => words.idIn("id", ["0; DROP TABLE t"])).toThrow("is no id");
  });

  it("takes text that looks like SQL for a value", () => {
    const { text, params } = spelled(sqlite, cold("sample")`SELECT ${"1; DROP TABLE t"}`);
    expect([text, params]).toEqual(["SELECT ?", ["1; DROP TABLE t"]]);
  });

  it("is made of several parts", () => {
    const parts = [1, 2].map((n) => branch(part`SELECT ${n}`));
    expect(spelled(postgres, cold("all")`${joined(parts, " UNION ALL ")}`)).toMatchObject({
      text: "(SELECT $1) UNION ALL (SELECT $2)",
      params: [1, 2],
    });
  });
});
