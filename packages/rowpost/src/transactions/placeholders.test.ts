import { expect, test } from "vitest";
import { toQuestionMarks } from "./placeholders.ts";

const dollars = { dollars: true };
const plain = { dollars: false };

test("dollars become question marks, with the parameters in the order of use", () => {
  expect(toQuestionMarks("SELECT $2, $1, $2, $10", ["a", "b", "", "", "", "", "", "", "", "j"], dollars)).toEqual({
    text: "SELECT ?, ?, ?, ?",
    params: ["b", "a", "b", "j"],
  });
});

test("question marks that are no placeholders are escaped", () => {
  expect(toQuestionMarks("SELECT a ? 'k', $1", [1], dollars).text).toBe("SELECT a \\? 'k', ?");
  expect(toQuestionMarks(`SELECT 'it''s ?', "c?", ?`, [1], plain)).toEqual({
    text: `SELECT 'it''s \\?', "c\\?", ?`,
    params: [1],
  });
  expect(toQuestionMarks("SELECT `c?` /* ? */ -- ?\n, ?", [1], plain).text).toBe("SELECT `c\\?` /* \\? */ -- \\?\n, ?");
});

test("dollars in texts, names and comments stay, and on MySQL everywhere", () => {
  expect(toQuestionMarks(`SELECT '$1', "$2" /* $3 */, $1`, ["a"], dollars)).toEqual({
    text: `SELECT '$1', "$2" /* $3 */, ?`,
    params: ["a"],
  });
  expect(toQuestionMarks("SELECT $1, ?", [1], plain)).toEqual({ text: "SELECT $1, ?", params: [1] });
});

test("a backslash in a text hides the quote after it", () => {
  expect(toQuestionMarks("SELECT 'a\\'?', ?", [1], plain).text).toBe("SELECT 'a\\'\\?', ?");
});
