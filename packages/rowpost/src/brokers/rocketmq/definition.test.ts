import { fileURLToPath } from "node:url";
import { fromJSON, loadSync, type PackageDefinition } from "@grpc/proto-loader";
import { expect, test } from "vitest";
import { serviceDefinition } from "./definition.ts";

const protos = fileURLToPath(new URL("../../../proto", import.meta.url));

function contents(definition: PackageDefinition): Record<string, unknown> {
  const ours = Object.entries(definition).filter(([name]) => name.startsWith("apache."));
  return Object.fromEntries(
    ours.map(([name, { format, type, ...methods }]) => [
      name,
      format === undefined ? Object.values(methods as Record<string, { path: string }>).map(({ path }) => path) : type,
    ]),
  );
}

test("the definition is what the .proto files say; else run node tools/rocketmq-definition.mjs", () => {
  const written = contents(fromJSON(serviceDefinition()));
  expect(Object.keys(written)).toContain("apache.rocketmq.v2.MessagingService");
  expect(written).toEqual(contents(loadSync("apache/rocketmq/v2/service.proto", { includeDirs: [protos] })));
});
