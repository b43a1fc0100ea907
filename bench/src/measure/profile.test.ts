import type { Profiler } from "node:inspector/promises";
import { expect, test } from "vitest";
import { sharesText, startProfile, timeByPart } from "./profile.ts";

function frame(id: number, functionName: string, url = ""): Profiler.ProfileNode {
  return { id, callFrame: { functionName, url, scriptId: "0", lineNumber: 0, columnNumber: 0 } };
}

const nodes = [
  frame(1, "(idle)"),
  frame(2, "(garbage collector)"),
  frame(3, "scan", "file:///x/packages/rowpost/dist/relay/engine.js"),
  frame(4, "parse", "/x/node_modules/mysql2/node_modules/iconv-lite/lib/index.js"),
  frame(5, "write", "node:net"),
  frame(6, "send", "/x/node_modules/@grpc/grpc-js/build/src/call.js"),
];

test("time is the package's or the folder's that the frame is in, and each sample lasts until the next", () => {
  const samples = [1, 2, 3, 4, 5, 6, 1];
  const timeDeltas = [5, 10, 20, 30, 40, 50, 60];
  const spent = timeByPart({ nodes, startTime: 0, endTime: 0, samples, timeDeltas }, 0, 1_000);
  expect(Object.fromEntries(spent)).toEqual({
    idle: 10,
    "garbage collection": 20,
    "rowpost/relay": 30,
    mysql2: 40,
    node: 50,
    "@grpc/grpc-js": 60,
  });
});

test("what was before the work began, and after its end, does not count", () => {
  const profile = { nodes, startTime: 5_000, endTime: 0, samples: [1, 3, 5, 5], timeDeltas: [100, 100, 7, 100] };
  expect([...timeByPart(profile, 5_200, 5_206)]).toEqual([["rowpost/relay", 7]]);
});

test("the largest share comes first, and small ones are added up", () => {
  expect(sharesText(new Map(Object.entries({ node: 300, idle: 692, a: 4, b: 4 })))).toBe("idle 69, node 30, rest 1");
});

test("a real profile finds where the time went", async () => {
  const profile = await startProfile();
  profile.begin();
  const end = performance.now() + 50;
  let sum = 0;
  while (performance.now() < end) sum += Math.sqrt(sum + 1);
  profile.end();
  expect(await profile.shares()).toMatch(/\b(bench|node|native functions) \d+/);
});
