/**
 * Prose ends at column 100: comment lines of TypeScript, JavaScript and shell scripts, and the text
 * of Markdown. A Chinese character takes two columns, as in a terminal.
 *
 * A line may be longer where it cannot be broken: it is one word, such as a URL or a link, or a row
 * of a table. Code does not count (Biome formats it): fences in Markdown, and a comment that stands
 * behind code on the same line.
 *
 *   node tools/check-prose.mjs            all files
 *   node tools/check-prose.mjs FILE ...   these
 */
import { readFileSync } from "node:fs";
import { commentsOf, parse } from "./comments.mjs";
import { projectFiles, report } from "./project-files.mjs";

const COLUMNS = 100;
const SCRIPT = /\.(ts|mjs|cjs|js)$/;
const SHELL = /^#!.*\b(ba)?sh\b/;

function widthOf(text) {
  return text.length + (text.match(/[\u1100-\u115f\u2e80-\u303e\u3041-\uffe6]/gu) ?? []).length;
}

/** Whether it can be broken outside of code: at a blank or after a Chinese clause. */
function isBreakable(text) {
  return /\s|[，。；：、！？）](?=.)/.test(text.replace(/`[^`]*`/g, "").trim());
}

/** Numbers and widths of long lines, from [number, whole line, text in it]. */
function tooLong(lines) {
  const found = lines.filter(
    ([, line, text]) => widthOf(line) > COLUMNS && !text.trimStart().startsWith("|") && isBreakable(text),
  );
  return found.map(([number, line]) => [number, widthOf(line)]);
}

/** Comments alone on their lines. */
function commentLines(path, source) {
  const file = parse(path, source);
  const lines = source.split("\n");
  return commentsOf(file).flatMap(({ pos, end }) => {
    const first = file.getLineAndCharacterOfPosition(pos).line;
    const last = file.getLineAndCharacterOfPosition(end).line;
    return lines.slice(first, last + 1).flatMap((line, index) => {
      const isBehindCode = index === 0 && !line.trimStart().startsWith("/");
      return isBehindCode ? [] : [[first + index + 1, line, line.replace(/^\s*(\/\/|\/\*\*?|\*\/?)/, "")]];
    });
  });
}

function shellLines(source) {
  return source.split("\n").flatMap((line, index) => {
    const comment = /^\s*#(?!!)(.*)$/.exec(line);
    return comment === null ? [] : [[index + 1, line, comment[1]]];
  });
}

/** Text of Markdown without fences, front matter and headings, which cannot be broken. */
function markdownLines(source) {
  let fence;
  return source.split("\n").flatMap((line, index) => {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (fence === undefined && mark !== undefined) fence = mark;
    else if (fence !== undefined) {
      if (mark === fence) fence = undefined;
    } else if (!/^#{1,6} /.test(line)) {
      return [[index + 1, line, line.replace(/^\s*([-*+>]|\d+[.)])\s/, "")]];
    }
    return [];
  });
}

function problemsOf(path) {
  const source = readFileSync(path, "utf8");
  const lines = SCRIPT.test(path)
    ? commentLines(path, source)
    : path.endsWith(".md")
      ? markdownLines(source)
      : SHELL.test(source)
        ? shellLines(source)
        : [];
  return tooLong(lines).map(
    ([number, columns]) => `${path}:${number}: ${columns} columns of prose, at most ${COLUMNS}`,
  );
}

const named = process.argv.slice(2);
const paths = named.length > 0 ? named : projectFiles();
report("prose", paths.flatMap(problemsOf), `${paths.length} files`);
