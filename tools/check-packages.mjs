/**
 * What a user would get: packs each published workspace as npm would, then asks publint whether the manifest and the files agree, and
 * (for packages that can be imported) attw whether every entry has types that match its code. ESM only, so the profile is esm-only.
 * Needs `npm run build`.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { report } from "./project-files.mjs";

const PUBLISHED = ["packages/rowpost", "packages/server"];

const folder = mkdtempSync(join(tmpdir(), "rowpost-packages-"));
try {
  report("packages", PUBLISHED.flatMap(problemsOf), PUBLISHED.join(", "));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function problemsOf(workspace) {
  const tarball = pack(workspace);
  const { exports } = JSON.parse(readFileSync(join(workspace, "package.json"), "utf8"));
  const problems = run("publint", ["run", tarball.path, "--strict"]);
  if (Object.keys(exports).length > 1)
    problems.push(...run("attw", [tarball.path, "--profile", "esm-only", "--no-emoji"]));
  problems.push(
    ...tarball.files.filter((file) => /\.test\.|tsbuildinfo/.test(file)).map((file) => `packed by mistake: ${file}`),
  );
  if (!tarball.files.includes("LICENSE")) problems.push("LICENSE is not packed");
  return problems.map((problem) => `${workspace}: ${problem}`);
}

/** Makes the tarball and lists what is in it. Its scripts are not run: nothing is built on the way. */
function pack(workspace) {
  const options = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder, "--workspace", workspace];
  const [made] = Object.values(
    JSON.parse(execFileSync("npm", options, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })),
  );
  return { path: join(folder, made.filename), files: made.files.map((file) => file.path) };
}

function run(tool, options) {
  const { status, stdout, stderr } = spawnSync(join("node_modules", ".bin", tool), options, { encoding: "utf8" });
  return status === 0 ? [] : [`${tool}:\n${stdout}${stderr}`];
}
