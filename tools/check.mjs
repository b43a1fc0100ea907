/**
 * Runs every gate of package.json (each script named `check:…`), all of them even when one is red,
 * so that one run tells everything. Shows the output of red ones only. Types come first, because
 * they also build what the package checks look at.
 *
 *   npm run check                   all
 *   npm run check -- types layers   these
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const { scripts } = JSON.parse(readFileSync("package.json", "utf8"));
const gates = Object.keys(scripts).flatMap((name) => (name.startsWith("check:") ? [name.slice("check:".length)] : []));
const wanted = process.argv.slice(2);
const unknown = wanted.filter((gate) => !gates.includes(gate));
if (unknown.length > 0) {
  console.error(`no such gate: ${unknown.join(", ")}; there are ${gates.join(", ")}`);
  process.exit(2);
}

let red = 0;
for (const gate of wanted.length > 0 ? wanted : gates) {
  const startedAt = performance.now();
  const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", `check:${gate}`], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(5);
  if (status !== 0) {
    red += 1;
    process.stdout.write(`${stdout}${stderr}\n`);
  }
  console.log(`${status === 0 ? "ok " : "RED"} ${seconds} s  ${gate}`);
}
if (red > 0) {
  console.log(`${red} gate(s) red; repeat one with: npm run check:NAME`);
  process.exitCode = 1;
}
