/**
 * Installs peers on demand into a cache folder outside the repository, so that they are not
 * downloaded otherwise and are not in the project's lock file. `ROWPOST_BENCH_CACHE` moves the
 * folder.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Folder bench/peers, the same from src and from dist. */
const SOURCES = fileURLToPath(new URL("../../peers/", import.meta.url));

const installed = new Map<string, string>();

/** Installs a peer once in this process. Returns its folder. */
export function installPeer(name: string, packageFile: "package.json" | "pom.xml"): string {
  const known = installed.get(name);
  if (known !== undefined) return known;
  const folder = install(name, packageFile);
  installed.set(name, folder);
  return folder;
}

/**
 * Copies the driver into the cache and installs its dependencies, once for each version of its
 * package file.
 */
function install(name: string, packageFile: "package.json" | "pom.xml"): string {
  const version = createHash("sha256")
    .update(readFileSync(join(SOURCES, name, packageFile)))
    .digest("hex")
    .slice(0, 12);
  const folder = join(cacheFolder(), `${name}-${version}`);
  mkdirSync(folder, { recursive: true });
  cpSync(join(SOURCES, name), folder, { recursive: true });
  cpSync(join(SOURCES, "protocol.mjs"), join(cacheFolder(), "protocol.mjs"));
  const mark = join(folder, "installed");
  if (packageFile === "package.json" && !existsSync(mark)) {
    rmSync(join(folder, "node_modules"), { recursive: true, force: true });
    // Hides npm's warnings, not its errors.
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: folder,
      stdio: ["ignore", 2, 2],
    });
    writeFileSync(mark, "");
  }
  // Compiled each time, because the source may have changed; the jars are downloaded once.
  if (packageFile === "pom.xml") execFileSync(maven(), ["-q", "package"], { cwd: folder, stdio: ["ignore", 2, 2] });
  return folder;
}

/** `MVN` replaces the program in PATH. */
function maven(): string {
  return process.env["MVN"] ?? "mvn";
}

function cacheFolder(): string {
  const own = process.env["ROWPOST_BENCH_CACHE"];
  return own ?? join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "rowpost-bench");
}
