/** The API reference, from the docstrings of every entry point: `npm run docs:api`. */
import { readdirSync, readFileSync } from "node:fs";

/** The sources behind the `exports` of a package. */
function entryPointsOf(name) {
  const { exports = {} } = JSON.parse(readFileSync(`packages/${name}/package.json`, "utf8"));
  const sources = Object.values(exports).flatMap((entry) => entry["rowpost-source"] ?? []);
  return sources.map((source) => `packages/${name}/${source.replace("./", "")}`);
}

/** @type {Partial<import("typedoc").TypeDocOptions>} */
export default {
  name: "rowpost",
  out: "reports/api",
  readme: "none",
  tsconfig: "tsconfig.base.json",
  entryPoints: readdirSync("packages").flatMap(entryPointsOf),
  // A checkout may have no remote, or one that is no address of a source.
  disableGit: true,
  basePath: ".",
  sourceLinkTemplate: "https://github.com/rowpost/rowpost/blob/main/{path}#L{line}",
  excludePrivate: true,
  excludeInternal: true,
  skipErrorChecking: true, // check:types looks for errors
  validation: { notExported: false, invalidLink: true, notDocumented: false },
};
