/**
 * Size of the console's app: gzipped JavaScript of the first load and of all pages, CSS, and the
 * packed total. Also checks that nothing in its page is inline, which its policy would refuse.
 * Needs `npm run build`.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { report } from "./project-files.mjs";

const FOLDER = "packages/server/dist/console";
/** In bytes. `first`: loaded at the start; the rest is loaded on demand. */
const MOST = { first: 45_000, js: 75_000, css: 10_000, packed: 400_000 };

const names = existsSync(FOLDER) ? readdirSync(FOLDER, { recursive: true, withFileTypes: true }) : [];
const files = names
  .filter((entry) => entry.isFile())
  .map((entry) => ({ name: entry.name, bytes: readFileSync(join(entry.parentPath, entry.name)) }));
const sum = (sizes) => sizes.reduce((total, size) => total + size, 0);
const zipped = (end) =>
  sum(files.filter(({ name }) => name.endsWith(end)).map(({ bytes }) => gzipSync(bytes, { level: 9 }).length));

/** The page's scripts and their static imports. */
function firstScripts() {
  const page = files.find(({ name }) => name === "index.html")?.bytes.toString() ?? "";
  const first = new Set([...page.matchAll(/src="[^"]*?([^"/]+\.js)"/g)].map(([, name]) => name));
  for (const name of first) {
    const code = files.find((file) => file.name === name)?.bytes.toString() ?? "";
    for (const [, imported] of code.matchAll(/(?:from|import)\s*"\.\/([^"/]+\.js)"/g)) first.add(imported);
  }
  return first;
}
const first = firstScripts();
const firstBytes = sum(
  files.filter(({ name }) => first.has(name)).map(({ bytes }) => gzipSync(bytes, { level: 9 }).length),
);
const sizes = {
  first: firstBytes,
  js: zipped(".js"),
  css: zipped(".css"),
  packed: sum(files.map(({ bytes }) => bytes.length)),
};

const problems = Object.entries(sizes)
  .filter(([kind, size]) => size > MOST[kind])
  .map(([kind, size]) => `${FOLDER}: ${kind} has ${size} bytes, at most ${MOST[kind]}`);
const page = files.find(({ name }) => name === "index.html")?.bytes.toString();
if (page === undefined) problems.push(`${FOLDER}/index.html is missing: npm run build`);
else if (/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i.test(page))
  problems.push(`${FOLDER}/index.html has something inline, which its policy refuses`);
report(
  "app",
  problems,
  `${sizes.first} bytes of JavaScript at first, ${sizes.js} in all, ${sizes.css} of CSS, ${sizes.packed} packed`,
);
