import ts from "typescript";

/**
 * A parsed script.
 *
 * @param {string} path
 * @param {string} source
 */
export function parse(path, source) {
  return ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true);
}

/**
 * The comments of a script, each once: where they begin and end in its text.
 *
 * @param {import("typescript").SourceFile} file
 * @returns {{ readonly pos: number, readonly end: number }[]}
 */
export function commentsOf(file) {
  const found = new Map();
  const visit = (node) => {
    if (ts.isJSDoc(node)) return;
    const position = node.getFullStart();
    for (const read of [ts.getLeadingCommentRanges, ts.getTrailingCommentRanges]) {
      for (const range of read(file.text, position) ?? []) found.set(range.pos, range);
    }
    for (const child of node.getChildren(file)) visit(child);
  };
  visit(file);
  return [...found.values()];
}

/**
 * Numbers of the lines that hold a token or a part of one.
 *
 * @param {import("typescript").SourceFile} file
 */
export function codeLinesOf(file) {
  const lines = new Set();
  const lineOf = (position) => file.getLineAndCharacterOfPosition(position).line;
  const visit = (node) => {
    if (ts.isJSDoc(node)) return;
    const children = node.getChildren(file);
    for (const child of children) visit(child);
    if (children.length > 0 || node.getWidth(file) === 0) return;
    for (let line = lineOf(node.getStart(file)); line <= lineOf(node.getEnd()); line += 1) lines.add(line);
  };
  visit(file);
  return lines;
}
