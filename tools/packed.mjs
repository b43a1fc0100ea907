import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** The workspaces that are published: the folder of each, by the name of its package. */
export const PUBLISHED = {
  rowpost: "packages/rowpost",
  "rowpost-server": "packages/server",
  "rowpost-nestjs": "packages/nestjs",
};

/**
 * Makes the tarballs that a user would get. Their scripts are not run: nothing is built on the way.
 *
 * @param {string} folder where they go
 * @param {string[]} names of packages
 * @returns {Record<string, { path: string, files: string[] }>} the tarball of each, and its files
 */
export function pack(folder, names = Object.keys(PUBLISHED)) {
  const workspaces = names.flatMap((name) => ["--workspace", name]);
  const options = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder, ...workspaces];
  const output = execFileSync("npm", options, {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const tarballs = Object.values(JSON.parse(output)).map(({ name, filename, files }) => [
    name,
    { path: join(folder, filename), files: files.map(({ path }) => path) },
  ]);
  return Object.fromEntries(tarballs);
}
