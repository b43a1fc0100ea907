/**
 * Checks the published packages: packs each workspace with npm, then runs publint on manifest and
 * files and (for importable packages) attw on the types of every entry, with old and new resolvers.
 * Needs `npm run build`.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { PUBLISHED, pack } from "./packed.mjs";
import { report } from "./project-files.mjs";

const attw = fileURLToPath(new URL("dist/index.js", import.meta.resolve("@arethetypeswrong/cli/package.json")));

/** Of `rowpost`, unpacked. */
const MOST_FILES = 250;
const MOST_BYTES = 4 * 1024 * 1024;

const folder = mkdtempSync(join(tmpdir(), "rowpost-packages-"));
try {
  const problems = [];
  for (const [name, tarball] of Object.entries(await pack(folder))) {
    problems.push(...(await problemsOf(name, tarball)));
  }
  report("packages", problems, Object.values(PUBLISHED).join(", "));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function problemsOf(name, tarball) {
  const workspace = PUBLISHED[name];
  const manifest = JSON.parse(readFileSync(join(workspace, "package.json"), "utf8"));
  const problems = await publintProblems(tarball.path, manifest);
  if (Object.keys(manifest.exports).length > 1) problems.push(...attwProblems(tarball.path, manifest));
  problems.push(...tarball.files.filter((file) => /\.test\.|tsbuildinfo/.test(file)).map((file) => `packed: ${file}`));
  if (name === "rowpost") problems.push(...sizeProblems(tarball));
  if (!tarball.files.includes("LICENSE")) problems.push("LICENSE is not packed");
  // Required by the license of the definitions it contains.
  if (name === "rowpost" && !tarball.files.includes("NOTICE")) problems.push("NOTICE is not packed");
  return problems.map((problem) => `${workspace}: ${problem}`);
}

function sizeProblems({ files, bytes }) {
  if (files.length <= MOST_FILES && bytes <= MOST_BYTES) return [];
  return [`${files.length} files, ${bytes} bytes: at most ${MOST_FILES} and ${MOST_BYTES}`];
}

async function publintProblems(tarball, manifest) {
  const { buffer } = new Uint8Array(readFileSync(tarball));
  const { messages } = await publint({ strict: true, pack: { tarball: buffer } });
  return messages.map((message) => `publint: ${formatMessage(message, manifest, { color: false })}`);
}

/**
 * The server runs on Node 20.19, where CommonJS can require ES modules, so it has no second build.
 */
function attwProblems(tarball, { name }) {
  const profile = name === "rowpost-server" ? ["--profile", "esm-only"] : [];
  const options = [attw, tarball, ...profile, "--no-definitely-typed", "--no-emoji", "--no-color"];
  const { status, stdout, stderr } = spawnSync(process.execPath, options, { encoding: "utf8" });
  return status === 0 ? [] : [`attw:\n${stdout}${stderr}`];
}
