/**
 * Sizes: a source file has at most 350 code lines and a function at most 80. Lines that hold only a
 * comment, or nothing, do not count, so that nobody saves on explanations; everything else does,
 * SQL in a template included. Tests are exempt. Aim for half of that: the limits leave room, since
 * at 300 and 60 people packed their lines (800 objects were spread into others to save them).
 *
 *   node tools/check-sizes.mjs            all source files
 *   node tools/check-sizes.mjs FILE ...   these
 */
import { readFileSync } from "node:fs";
import ts from "typescript";
import { codeLinesOf, parse } from "./comments.mjs";
import { projectFiles, report } from "./project-files.mjs";

const MAX_FILE_LINES = 350;
const MAX_FUNCTION_LINES = 80;
const SOURCES = ["*.ts", "*.tsx", "*.mts", "*.mjs", "*.cjs"];
const TEST = /\.test\.tsx?$|(^|\/)test\//;

/**
 * Every function with a body: name, first line, and its own code lines. Declarations and methods
 * inside a factory are measured separately; inline callbacks belong to the function around them.
 */
function functionsOf(file, codeLines) {
  const found = [];
  const visit = (node) => {
    if (ts.isFunctionLike(node) && node.body !== undefined) {
      const first = file.getLineAndCharacterOfPosition(node.getStart(file)).line;
      const last = file.getLineAndCharacterOfPosition(node.getEnd()).line;
      const inner = innerLinesOf(node.body, file);
      let count = 0;
      for (let line = first; line <= last; line += 1) if (codeLines.has(line) && !inner.has(line)) count += 1;
      const named = node.name ?? node.parent.name;
      found.push({ name: named?.getText(file) ?? "(anonymous)", line: first + 1, count });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Lines of declarations and methods inside a function. */
function innerLinesOf(body, file) {
  const lines = new Set();
  const visit = (node) => {
    const named = ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isAccessor(node);
    if (named) {
      const first = file.getLineAndCharacterOfPosition(node.getStart(file)).line;
      const last = file.getLineAndCharacterOfPosition(node.getEnd()).line;
      for (let line = first; line <= last; line += 1) lines.add(line);
    } else ts.forEachChild(node, visit);
  };
  ts.forEachChild(body, visit);
  return lines;
}

function problemsOf(path) {
  const file = parse(path, readFileSync(path, "utf8"));
  const codeLines = codeLinesOf(file);
  const problems = [];
  if (codeLines.size > MAX_FILE_LINES)
    problems.push(`${path}: ${codeLines.size} code lines, at most ${MAX_FILE_LINES}`);
  for (const { name, line, count } of functionsOf(file, codeLines)) {
    if (count > MAX_FUNCTION_LINES) {
      problems.push(`${path}:${line}: ${name} has ${count} code lines, at most ${MAX_FUNCTION_LINES}`);
    }
  }
  return problems;
}

const named = process.argv.slice(2);
const paths = named.length > 0 ? named : projectFiles(...SOURCES).filter((path) => !TEST.test(path));
report("sizes", paths.flatMap(problemsOf), `${paths.length} files`);
