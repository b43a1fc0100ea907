import { describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../runtime/errors.ts";
import { words as mysql } from "../../mysql/words.ts";
import { words as postgres } from "../../postgres/words.ts";
import { words as sqlite } from "../../sqlite/words.ts";
import { namedTimes, putTimes, wallClockOf } from "./user-query.ts";

const OPAQUE = { mysql: mysql.opaque, postgres: postgres.opaque, sqlite: sqlite.opaque };

const put = (dialect: keyof typeof OPAQUE, query: string): string =>
  putTimes(query, OPAQUE[dialect], (name) => (name === "from" ? "1" : "2"));

describe("an operator's query", () => {
  it.each(["mysql", "postgres", "sqlite"] as const)("has its times put in, and nothing else, on %s", (dialect) => {
    expect(put(dialect, "SELECT k FROM o WHERE t >= :from AND t<:to;\n")).toBe("SELECT k FROM o WHERE t >= 1 AND t<2");
    const untouched =
      "SELECT ':from', 'it''s :to', \":from\" /* :to; */ -- :from )\nFROM o WHERE x = ':' AND f(:other, :fromage)";
    expect(put(dialect, untouched)).toBe(untouched);
    expect(namedTimes(untouched, OPAQUE[dialect])).toEqual({ from: false, to: false });
  });

  it("has no parameters", () => {
    for (const query of ["SELECT k FROM o WHERE id > $1", "SELECT k FROM o LIMIT ($2)"]) {
      expect(() => put("postgres", query), query).toThrow(/parameter \$\d, .* write the value itself/);
    }
    const untouched = "SELECT a$1, '$1', $$ $1 $$ FROM o";
    expect(put("postgres", untouched)).toBe(untouched);
  });

  it("keeps what only one dialect has", () => {
    expect(put("mysql", "SELECT `:from`, 'a\\':from' # :from\nWHERE :to")).toBe(
      "SELECT `:from`, 'a\\':from' # :from\nWHERE 2",
    );
    expect(put("mysql", "SELECT 1 --\n+ :from")).toBe("SELECT 1 --\n+ 1");
    expect(put("postgres", "SELECT x::from, $$:to$$, $a$ :to $$ $a$, E'\\':to', '\\', :to")).toBe(
      "SELECT x::from, $$:to$$, $a$ :to $$ $a$, E'\\':to', '\\', 2",
    );
  });

  it.each(["", ";", "SELECT 1; DROP TABLE o", "SELECT 1) AS q; --", "SELECT 1) UNION (SELECT 2", "SELECT (1"])(
    "is one SELECT that stays within its parentheses: %s",
    (query) => {
      for (const dialect of ["mysql", "postgres", "sqlite"] as const) {
        expect(() => put(dialect, query)).toThrow(ConfigurationError);
      }
    },
  );

  it("cannot hide its code from rowpost in what is none", () => {
    for (const query of [
      "SELECT 1 AS a$b$) AS q; DELETE FROM o -- $b$",
      "SELECT 1 AS a$b$) UNION (SELECT 2 -- $b$",
      "SELECT $\u00e9$ ' $\u00e9$) UNION (SELECT 2 -- '",
      "SELECT 'a' AS namE'\\') UNION (SELECT 2 -- '",
      "SELECT 1 /* /* */ ' */) UNION (SELECT 2 -- '",
      "SELECT 1 /* /* /* */ */ */",
    ]) {
      expect(() => put("postgres", query), query).toThrow(ConfigurationError);
    }
    expect(put("postgres", "SELECT a$b, E'\\'', $\u00e9$)$\u00e9$ /* /* :to */ ) */ FROM o WHERE t < :to")).toBe(
      "SELECT a$b, E'\\'', $\u00e9$)$\u00e9$ /* /* :to */ ) */ FROM o WHERE t < 2",
    );
    for (const query of ["SELECT 1 /*!) UNION (SELECT 2*/", "SELECT 1 /*!99999 x*/", "SELECT 1 /*M! ' */"]) {
      expect(() => put("mysql", query), query).toThrow("take it out");
    }
  });

  it("is given a wall clock", () => {
    expect(wallClockOf(Date.UTC(2026, 10, 23, 18, 0, 0, 7), "Asia/Shanghai")).toBe("2026-11-24 02:00:00.007");
    expect(() => wallClockOf(0, "Asia/Nowhere")).toThrow(ConfigurationError);
  });
});
