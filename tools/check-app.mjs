/**
 * The size of the console's app as a browser gets it: JavaScript and CSS compressed with gzip, and
 * all of it as it is packed. Nothing in its page is inline, or its policy would refuse it. Needs
 * `npm run build`.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { report } from "./project-files.mjs";

const FOLDER = "packages/server/dist/console";
/** Bytes. The app is one file, so that the first load is all of it. */
const MOST = { js: 45_000, css: 10_000, packed: 400_000 };

const names = existsSync(FOLDER) ? readdirSync(FOLDER, { recursive: true, withFileTypes: true }) : [];
const files = names
  .filter((entry) => entry.isFile())
  .map((entry) => ({ name: entry.name, bytes: readFileSync(join(entry.parentPath, entry.name)) }));
const sum = (sizes) => sizes.reduce((total, size) => total + size, 0);
const zipped = (end) =>
  sum(files.filter(({ name }) => name.endsWith(end)).map(({ bytes }) => gzipSync(bytes, { level: 9 }).length));
const sizes = { js: zipped(".js"), css: zipped(".css"), packed: sum(files.map(({ bytes }) => bytes.length)) };

const problems = Object.entries(sizes)
  .filter(([kind, size]) => size > MOST[kind])
  .map(([kind, size]) => `${FOLDER}: ${kind} has ${size} bytes, at most ${MOST[kind]}`);
const page = files.find(({ name }) => name === "index.html")?.bytes.toString();
if (page === undefined) problems.push(`${FOLDER}/index.html is missing: npm run build`);
else if (/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i.test(page))
  problems.push(`${FOLDER}/index.html has something inline, which its policy refuses`);
report("app", problems, `${sizes.js} bytes of JavaScript, ${sizes.css} of CSS, ${sizes.packed} packed`);
