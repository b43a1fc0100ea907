/**
 * A small run of the benchmark's scenarios: they work and print what they promise. The figures mean
 * nothing at this size, so none is judged.
 *
 *   node .ci/bench.mjs MARIADB_URL POSTGRES_URL BROKER_URL...
 *
 * Exit status: 0 all printed their results, 1 some did not.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [mariadb, postgres, ...brokers] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "rowpost-ci-bench-"));
const sqlite = `sqlite:${join(folder, "bench.sqlite")}`;
const runs = [
  ["outbox-enqueue", mariadb, "500"],
  ["outbox-enqueue", postgres, "500"],
  ["outbox-enqueue", sqlite, "500"],
  ["outbox-drain", mariadb, "2000"],
  ["outbox-drain", postgres, "2000"],
  ["outbox-drain", sqlite, "2000"],
  ["outbox-latency", postgres, "200"],
  ["inbox", mariadb, "500"],
  ["confirm", postgres, "2000"],
  ["queue-append", mariadb, "1000"],
  ["queue-append", sqlite, "1000"],
  ["queue-consume", postgres, "1000", undefined, "--variant", "each", "--variant", "batch"],
  ["queue-consume", sqlite, "1000", undefined, "--variant", "three-groups"],
  ["queue-latency", mariadb, "100"],
  ["isolation-key", sqlite, "500", undefined, "--variant", "30k"],
  ["isolation-endpoint", postgres, "500", undefined, "--variant", "slow"],
  ["rocketmq-producers", sqlite, "2000", brokers.find((url) => url.startsWith("rocketmq:"))],
  ...brokers.map((broker, index) => ["outbox-broker", index % 2 === 0 ? mariadb : postgres, "2000", broker]),
];
const fields = [
  "scenario",
  "database",
  "variant",
  "messages",
  "ratePerSecond",
  "rawRatePerSecond",
  "ratioToRaw",
  "statementsPerMessage",
  "p50Ms",
  "p99Ms",
  "clientCpuMsPer1000",
  "serverCpuMsPer1000",
];

/** What is wrong with a run, or nothing. */
function problemOf(status, stdout, scenario) {
  if (status !== 0) return `exit status ${status}`;
  const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
  if (lines.length === 0) return "no line of JSON";
  for (const line of lines) {
    const result = JSON.parse(line);
    const missing = fields.filter((field) => !(field in result));
    if (missing.length > 0) return `a result without ${missing.join(", ")}`;
    if (result.scenario !== scenario) return `a result of ${result.scenario}`;
  }
  return "";
}

let red = 0;
for (const [scenario, database, messages, broker, ...more] of runs) {
  const startedAt = performance.now();
  const options = ["--database", database, "--messages", messages, "--runs", "1", "--quick", "--json", ...more];
  if (broker !== undefined) options.push("--broker", broker);
  const args = ["run", "--silent", "bench", "--", scenario, ...options];
  const { status, stdout } = spawnSync("npm", args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  const problem = problemOf(status, stdout, scenario);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stdout.write(stdout);
  const place = [database, broker].filter(Boolean).map((address) => address.split(":")[0]);
  console.log(`${problem === "" ? "ok " : "RED"} ${seconds} s  ${scenario} on ${place.join(" and ")} ${problem}`);
  if (problem !== "") red += 1;
}
rmSync(folder, { recursive: true, force: true });
process.exitCode = red === 0 ? 0 : 1;
