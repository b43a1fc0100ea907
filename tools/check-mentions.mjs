/**
 * Mentions that no file of the project may hold, because they are true on one machine only or
 * silence a gate:
 *
 * - the host of a package registry or mirror, and a "resolved" address in a lock file: an install
 *   takes them from the user's npm
 * - an absolute path of the machine where the file was written
 * - a comment that switches a checker off: mend the code, or change the rule for everyone with its
 *   reason
 */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname } from "node:path";
import { projectFiles, report } from "./project-files.mjs";

const literal = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
// Spelled so that this file does not find itself.
const MARKERS = ["biome", "ts", "oxlint", "eslint", "jscpd", "knip"].join("|");

const RULES = [
  { what: "host of a package registry", pattern: registryHosts(), flags: "i" },
  {
    what: "address in a lock file",
    pattern: String.raw`"resolved": *"[a-z+]+:\/\/`,
    flags: "",
    only: /package-lock\.json$/,
  },
  { what: "absolute path of a machine", pattern: machinePaths(), flags: "" },
  {
    what: "comment that switches a checker off",
    pattern: String.raw`(\/\/|\/\*|<!--)\s*@?(${MARKERS})[:-](ignore|disable|nocheck|expect-error)`,
    flags: "",
  },
];

/** Public registries, and the one of this npm configuration. */
function registryHosts() {
  const hosts = [
    "registry[.]npmjs",
    "registry[.]yarnpkg",
    "npmmirror[.]",
    "registry[.]npm[.]taobao",
    "deb[.]debian[.]org",
  ];
  hosts.push("repo[0-9]*[.]maven", "proxy[.]golang[.]org");
  const configured = process.env.npm_config_registry;
  if (configured) hosts.push(literal(new URL(configured).host));
  return `(${hosts.join("|")})`;
}

/** This checkout and its neighbors, the home folder, and typical home folders. */
function machinePaths() {
  const here = dirname(process.cwd());
  const places = [
    `${literal(process.cwd())}\\b`,
    String.raw`\/(home|Users)\/[a-z][a-z0-9_-]*\/`,
    `${literal(homedir())}\\/`,
  ];
  if (here !== "/" && basename(here) !== "tmp") places.push(`${literal(here)}\\/[a-z.]`);
  return `(^|[^A-Za-z0-9_.\\/])(${places.join("|")})`;
}

function problemsOf(path) {
  const text = readFileSync(path, "utf8");
  if (text.includes("\0")) return [];
  return RULES.filter((rule) => rule.only?.test(path) ?? true).flatMap((rule) => {
    const found = [...text.matchAll(new RegExp(rule.pattern, `gm${rule.flags}`))];
    return found.map((match) => {
      const line = text.slice(0, match.index).split("\n").length;
      return `${path}:${line}: ${rule.what}: ${match[0].trim()}`;
    });
  });
}

const paths = projectFiles();
report("mentions", paths.flatMap(problemsOf), `${paths.length} files`);
