/**
 * Counts the product: code lines (without comments, blank lines and tests) and files of each
 * workspace and of the library's folders, as a table.
 *
 *   node tools/count-lines.mjs
 */
import { readFileSync } from "node:fs";
import { codeLinesOf, parse } from "./comments.mjs";
import { projectFiles } from "./project-files.mjs";

const areas = new Map();
for (const path of projectFiles("packages/*/src/*.ts", "packages/*/src/*.tsx")) {
  if (/\.test\.tsx?$/.test(path)) continue;
  const lines = codeLinesOf(parse(path, readFileSync(path, "utf8"))).size;
  const workspace = /^packages\/[^/]+/.exec(path)?.[0];
  const folder = /^packages\/rowpost\/src\/[^/]+\//.exec(path)?.[0];
  for (const area of ["all", workspace, ...(folder === undefined ? [] : [folder])]) {
    const counted = areas.get(area) ?? { files: 0, lines: 0 };
    areas.set(area, { files: counted.files + 1, lines: counted.lines + lines });
  }
}
console.log("| area | files | code lines |\n| --- | --- | --- |");
for (const [area, { files, lines }] of [...areas].sort(([a], [b]) => a.localeCompare(b)))
  console.log(`| ${area} | ${files} | ${lines} |`);
