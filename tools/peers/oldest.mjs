/**
 * Fills a folder for `npm install`: the package as a user would get it, and the oldest version that
 * each of its peer ranges names. @platformatic/kafka is left out: it needs a newer Node than 20.
 *
 *   node tools/peers/oldest.mjs FOLDER
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pack } from "../packed.mjs";

const [folder] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync("packages/rowpost/package.json", "utf8"));

const dependencies = { rowpost: `file:${(await pack(folder, ["rowpost"])).rowpost.path}` };
for (const [name, range] of Object.entries(manifest.peerDependencies)) {
  const [oldest] = /\d+\.\d+\.\d+/.exec(range) ?? [];
  if (oldest === undefined) throw new Error(`the range of ${name}, ${range}, names no oldest version`);
  if (name !== "@platformatic/kafka") dependencies[name] = oldest;
}
console.log(dependencies);
// The client of round.mjs for a JetStream stream, in step with the transport.
dependencies["@nats-io/jetstream"] = dependencies["@nats-io/transport-node"];
writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }));
