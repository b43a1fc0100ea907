/**
 * Makes the folder that is published as `rowpost`, from the sources: of each entry one file for
 * `import`, one for `require`, and one of types. What entries share is in `shared/`, so that a
 * class is one class whatever entry it comes from.
 *
 *   node tools/bundle.mjs FOLDER
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";

const LIBRARY = fileURLToPath(new URL("../packages/rowpost", import.meta.url));

/** Not minified, only printed without extra white space. */
const PLAIN = { compress: false, mangle: false, codegen: { removeWhitespace: false } };

/** @param {string} folder what is in it is replaced */
export async function bundle(folder) {
  const manifest = publishedManifest();
  const entries = Object.values(manifest.exports).filter((entry) => typeof entry === "object");
  const names = entries.map((entry) => entry.default.replace(/^\.\/dist\/|\.js$/g, ""));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "cjs"), { recursive: true });
  for (const file of ["LICENSE", "README.md", "bin"])
    cpSync(join(LIBRARY, file), join(folder, file), { recursive: true });
  cpSync(join(LIBRARY, "proto/NOTICE"), join(folder, "NOTICE"));
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest, undefined, 2));
  writeFileSync(join(folder, "cjs/package.json"), JSON.stringify({ type: "commonjs" }));

  // Comments are only in the types; names and lines stay, for stack traces.
  const code = await opened(names, []);
  await code.write({ ...outputIn(folder, "dist"), comments: false });
  // Jest cannot run import(), so a client is required there, also at its first use.
  const required = { format: "cjs", strict: true, dynamicImportInCjs: false, minify: PLAIN };
  await code.write({ ...outputIn(folder, "cjs"), ...required, comments: false });
  const types = await opened(names, [dts({ oxc: true, emitDtsOnly: true, tsconfig: false })]);
  // The plugin recognizes a shared types file by the end of its name.
  await types.write(outputIn(folder, "dist", ".d"));
  await types.write(outputIn(folder, "cjs", ".d"));
}

/** Without fields for this repository only. */
function publishedManifest() {
  const manifest = JSON.parse(readFileSync(join(LIBRARY, "package.json"), "utf8"));
  delete manifest.private;
  delete manifest.devDependencies;
  for (const entry of Object.values(manifest.exports)) delete entry["rowpost-source"];
  return manifest;
}

function opened(names, plugins) {
  return rolldown({
    plugins,
    input: Object.fromEntries(names.map((name) => [name, join(LIBRARY, "src", `${name}.ts`)])),
    // Clients, loaded on demand, and Node's modules.
    external: /^[^./]/,
    transform: { target: "es2023" },
    treeshake: { moduleSideEffects: false },
    onLog: (level, log, print) => print(level === "warn" ? "error" : level, log),
  });
}

function outputIn(folder, name, ending = "") {
  const sources = (folders) => new RegExp(`[\\\\/]src[\\\\/](?:${folders})[\\\\/]`);
  return {
    dir: join(folder, name),
    entryFileNames: "[name].js",
    chunkFileNames: "shared/[name].js",
    // Few files: code shared by all entries, by databases and queue, and by brokers.
    codeSplitting: {
      groups: [
        { name: `base${ending}`, test: sources("runtime|message") },
        { name: `brokers${ending}`, test: sources("brokers|inbox|consume"), minShareCount: 2 },
        { name: `engine${ending}`, test: sources("admin|databases|outbox|queue|relay|transactions"), minShareCount: 2 },
      ],
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundle(process.argv[2]);
