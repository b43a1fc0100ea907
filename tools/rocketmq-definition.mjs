/**
 * Writes packages/rowpost/src/brokers/rocketmq/definition.ts from the .proto files: what is loaded
 * has to be code, because a file beside it would not be found from CommonJS and from a bundle.
 * Run it after a change of packages/rowpost/proto; a test compares the two.
 *
 *   node tools/rocketmq-definition.mjs
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { deflateRawSync } from "node:zlib";

const folder = new URL("../packages/rowpost/", import.meta.url);
const manifest = new URL("package.json", folder);
const load = createRequire(createRequire(manifest).resolve("@grpc/proto-loader"));
const { Root, parse, common } = load("protobufjs");

const root = new Root();
for (const name of ["duration", "timestamp"]) root.addJSON(common.get(`google/protobuf/${name}.proto`).nested);
for (const name of ["definition", "service"]) {
  parse(readFileSync(new URL(`proto/apache/rocketmq/v2/${name}.proto`, folder), "utf8"), root, { keepCase: false });
}
const text = deflateRawSync(JSON.stringify(root.resolveAll().toJSON()), { level: 9 }).toString("base64");
writeFileSync(
  new URL("src/brokers/rocketmq/definition.ts", folder),
  `/** Written by tools/rocketmq-definition.mjs from packages/rowpost/proto (Apache-2.0). */
import { inflateRawSync } from "node:zlib";

/** What RocketMQ's clients and servers say to each other, as protobufjs keeps it. */
export function serviceDefinition(): object {
  return JSON.parse(inflateRawSync(Buffer.from(DEFLATED, "base64")).toString("utf8")) as object;
}

const DEFLATED = [
${text
  .match(/.{1,90}/g)
  .map((line) => `  "${line}",`)
  .join("\n")}
].join("");
`,
);
