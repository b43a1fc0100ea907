import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { bundle } from "./bundle.mjs";

/** Folders of the published workspaces by package name. */
export const PUBLISHED = {
  rowpost: "packages/rowpost",
  "rowpost-server": "packages/server",
  "rowpost-nestjs": "packages/nestjs",
};

/**
 * Makes the tarballs that a user would get. Their scripts are not run: but for `rowpost`, nothing
 * is built on the way.
 *
 * @param {string} folder where they go
 * @param {string[]} names of packages
 * @returns {Promise<Record<string, { path: string, files: string[], bytes: number }>>} the tarball
 *   of each, its files, and their bytes
 */
export async function pack(folder, names = Object.keys(PUBLISHED)) {
  const bundled = join(folder, "rowpost");
  if (names.includes("rowpost")) await bundle(bundled);
  const packages = names.map((name) => (name === "rowpost" ? bundled : `./${PUBLISHED[name]}`));
  const options = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder, ...packages];
  const output = execFileSync("npm", options, {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const tarballs = Object.values(JSON.parse(output)).map(({ name, filename, files, unpackedSize }) => [
    name,
    { path: join(folder, filename), files: files.map(({ path }) => path), bytes: unpackedSize },
  ]);
  return Object.fromEntries(tarballs);
}
