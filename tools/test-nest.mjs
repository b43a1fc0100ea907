/**
 * Runs rowpost-nestjs, packed, with each major of NestJS that its manifest allows: the module, the
 * injection, a TypeORM transaction, an `@OnMessage` method and SIGTERM, on a real MariaDB and NATS.
 * The newest version of each major, as a new project gets it.
 *
 *   node tools/test-nest.mjs
 *
 * Needs `npm run build`, MariaDB and NATS. Exit status: 0 all green, 1 some are not.
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { command } from "./command.mjs";
import { pack } from "./packed.mjs";
import { probe } from "./services/probe.js";

/** Ends a run that hangs. */
const LIMIT_MS = 300_000;
const manifest = JSON.parse(readFileSync("packages/nestjs/package.json", "utf8"));
const majors = manifest.peerDependencies["@nestjs/common"].match(/(?<=\^)\d+/g);
const folder = mkdtempSync(join(tmpdir(), "rowpost-nest-"));

async function isGreen(major, tarballs, addresses) {
  const cwd = join(folder, major);
  mkdirSync(cwd);
  const {
    "@nats-io/transport-node": transport,
    mysql2,
    typeorm,
    rxjs,
    "reflect-metadata": reflect,
  } = manifest.devDependencies;
  const nest = ["common", "core", "platform-express"].map((name) => [`@nestjs/${name}`, `^${major}.0.0`]);
  const dependencies = {
    ...Object.fromEntries(nest),
    "@nats-io/transport-node": transport,
    rowpost: `file:${tarballs.rowpost.path}`,
    "rowpost-nestjs": `file:${tarballs["rowpost-nestjs"].path}`,
    "reflect-metadata": reflect,
    mysql2,
    rxjs,
    typeorm,
  };
  writeFileSync(join(cwd, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }));
  copyFileSync("packages/nestjs/test/shop.process.mjs", join(cwd, "shop.process.mjs"));
  copyFileSync("tools/nest/round.mjs", join(cwd, "round.mjs"));
  const output = [];
  const options = { cwd, output, limitMs: LIMIT_MS };
  try {
    await command(options, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error");
    await command(options, process.execPath, "round.mjs", ...addresses);
    return true;
  } catch (error) {
    output.push(Buffer.from(`RED NestJS ${major}: ${String(error)}\n`));
    return false;
  } finally {
    process.stdout.write(Buffer.concat(output));
  }
}

try {
  const tarballs = await pack(folder);
  const addresses = await Promise.all(["mariadb", "nats"].map(async (name) => (await probe(name)).address));
  const results = await Promise.all(majors.map((major) => isGreen(major, tarballs, addresses)));
  process.exitCode = majors.length >= 3 && results.every(Boolean) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
