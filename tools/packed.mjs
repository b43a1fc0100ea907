import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** The workspaces that are published, by name. */
const PUBLISHED = ["rowpost", "rowpost-server", "rowpost-nestjs"];

/**
 * Makes the tarballs that a user would get. Their scripts are not run: nothing is built on the way.
 *
 * @param {string} folder where they go
 * @returns {Record<string, string>} the path of each, by the name of its package
 */
export function packPublished(folder) {
  const workspaces = PUBLISHED.flatMap((name) => ["--workspace", name]);
  const options = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder, ...workspaces];
  const made = Object.values(
    JSON.parse(execFileSync("npm", options, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 })),
  );
  return Object.fromEntries(made.map(({ name, filename }) => [name, join(folder, filename)]));
}
