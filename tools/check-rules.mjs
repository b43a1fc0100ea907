/**
 * The rules of docs/rules.md and what cites and proves them:
 *
 * - a rule that a comment or a test's title cites, as `(rule: key-order)` or
 *   `(rules: claim-token, hand-over)`, is there
 * - each rule names a guard, whose file exists and has a function of that name
 * - each rule names a test, whose file exists and has that title
 * - the Chinese page has the same rules in the same order, with the same guards and tests
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import ts from "typescript";
import { commentsOf, parse } from "./comments.mjs";
import { projectFiles, report } from "./project-files.mjs";

const PAGE = "docs/rules.md";
const CHINESE_PAGE = "docs/rules.zh-CN.md";
/** Base of paths on the pages. */
const BASE = "packages/rowpost/";
const SCRIPT = /\.(ts|mjs|cjs|js)$/;
const KINDS = { guard: "guard", 守卫: "guard", test: "test", 测试: "test" };

/** @typedef {{ kind: string, path: string, name: string, line: number }} Row */

/**
 * The rules of a page: each heading of the second level, with the rows of its table.
 *
 * @returns {{ name: string, line: number, rows: Row[] }[]}
 */
function rulesOf(page) {
  const rules = [];
  for (const [index, text] of readFileSync(page, "utf8").split("\n").entries()) {
    const line = index + 1;
    const heading = /^## (\S+)$/.exec(text)?.[1];
    if (heading !== undefined) rules.push({ name: heading, line, rows: [] });
    const [, word, path, name] = /^\| (\S+) \| `([^`]+)`(?:: (.+?))? \|$/.exec(text) ?? [];
    const kind = KINDS[word];
    if (kind !== undefined) rules.at(-1)?.rows.push({ kind, path, name: name ?? "", line });
  }
  return rules;
}

/** Names of all functions in a script, and its strings. */
const scripts = new Map();
function contentsOf(path) {
  const known = scripts.get(path);
  if (known !== undefined) return known;
  const functions = new Set();
  const texts = new Set();
  const visit = (node) => {
    const declared = ts.isFunctionLike(node) && "body" in node && node.body !== undefined ? node : undefined;
    const name = declared?.name ?? (declared === undefined ? undefined : declared.parent.name);
    if (name !== undefined) functions.add(name.getText());
    if (ts.isStringLiteralLike(node)) texts.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(parse(path, readFileSync(path, "utf8")));
  scripts.set(path, { functions, texts });
  return scripts.get(path);
}

/** Fault in a row of a rule's table, or undefined. */
function faultOf({ kind, path: below, name }) {
  const path = `${BASE}${below}`;
  if (!existsSync(path)) return `${path} does not exist`;
  if (!statSync(path).isFile()) return `${path} is a folder; name the file`;
  const wanted = kind === "guard" ? name.replaceAll("`", "") : name;
  if (wanted === "") return kind === "guard" ? `names no function of ${path}` : `names no test of ${path}`;
  const { functions, texts } = contentsOf(path);
  if (kind === "guard") return functions.has(wanted) ? undefined : `${path} has no function ${wanted}`;
  return texts.has(wanted) ? undefined : `${path} has no test "${wanted}"`;
}

function problemsOfRule({ name, line, rows }) {
  const problems = rows.flatMap((row) => {
    const fault = faultOf(row);
    return fault === undefined ? [] : [`${PAGE}:${row.line}: ${row.kind} of ${name}: ${fault}`];
  });
  for (const kind of ["guard", "test"]) {
    if (!rows.some((row) => row.kind === kind)) problems.push(`${PAGE}:${line}: ${name} has no ${kind}`);
  }
  return problems;
}

/** Differences of the Chinese page apart from language. */
function problemsOfChinese(rules) {
  const chinese = rulesOf(CHINESE_PAGE);
  const order = ({ name }) => name;
  if (rules.map(order).join() !== chinese.map(order).join()) {
    return [
      `${CHINESE_PAGE}: its rules are ${chinese.map(order).join(", ")}; on ${PAGE} ${rules.map(order).join(", ")}`,
    ];
  }
  const told = (row) => (row === undefined ? "nothing" : `${row.kind} ${row.path}: ${row.name}`);
  return rules.flatMap(({ name, rows }, index) => {
    const other = chinese[index];
    return Array.from({ length: Math.max(rows.length, other.rows.length) }, (_, row) => row).flatMap((row) => {
      const [here, there] = [told(rows[row]), told(other.rows[row])];
      const line = other.rows[row]?.line ?? other.line;
      return here === there ? [] : [`${CHINESE_PAGE}:${line}: ${name}: "${there}", and on ${PAGE} "${here}"`];
    });
  });
}

/**
 * Cited names with their positions; a comment may break before a name. Without the parenthesis only
 * a name with a hyphen counts, because of texts like "one rule: small steps".
 */
function citationsIn(text) {
  const flat = text.replace(/\n\s*(\*|\/\/|#|--)(?=\s)/g, (gap) => " ".repeat(gap.length));
  const found = [...flat.matchAll(/(\(?)\b(rules?):\s+([a-z]+(?:-[a-z]+)*(?:,\s+[a-z]+(?:-[a-z]+)*)*)/g)];
  return found.flatMap(({ 1: opening, 2: word, 3: names, index }) => {
    const cited = word === "rule" ? [names.split(",")[0]] : names.split(/,\s+/);
    return cited.flatMap((name) => (opening === "(" || name.includes("-") ? [{ name, index }] : []));
  });
}

/** Citations in comments and strings of a script, and anywhere in another file. */
function citationsOf(path) {
  const source = readFileSync(path, "utf8");
  if (source.includes("\0") || !/\brules?:\s/.test(source)) return [];
  const lineOf = (index) => source.slice(0, index).split("\n").length;
  const told = (pos, text) => citationsIn(text).map(({ name, index }) => ({ name, line: lineOf(pos + index) }));
  if (!SCRIPT.test(path)) return told(0, source);
  const file = parse(path, source);
  const found = commentsOf(file).flatMap(({ pos, end }) => told(pos, source.slice(pos, end)));
  const visit = (node) => {
    if (ts.isStringLiteralLike(node)) found.push(...told(node.getStart(file), node.text));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

const rules = rulesOf(PAGE);
const known = new Set(rules.map(({ name }) => name));
const unknown = projectFiles().flatMap((path) =>
  citationsOf(path)
    .filter(({ name }) => !known.has(name))
    .map(({ name, line }) => `${path}:${line}: the rule "${name}" is not on ${PAGE}`),
);
report("rules", [...unknown, ...rules.flatMap(problemsOfRule), ...problemsOfChinese(rules)], `${rules.length} rules`);
