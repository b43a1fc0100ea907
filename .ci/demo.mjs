/**
 * Runs the demo as a user would (`npm start -- ARGS`) and reads its last line: nothing lost,
 * nothing phantom, and there was something to lose. Exit status: 0 so it is, 1 it is not.
 */
import { spawnSync } from "node:child_process";

const { status, stdout } = spawnSync("npm", ["start", "--silent", "--", ...process.argv.slice(2)], {
  encoding: "utf8",
  stdio: ["ignore", "pipe", "inherit"],
  maxBuffer: 64 * 1024 * 1024,
});
const lines = stdout.trimEnd().split("\n");
console.log(lines.slice(-25).join("\n"));

const last = lines.at(-1) ?? "";
const counts = Object.fromEntries([...last.matchAll(/(\w+)=(\d+)/g)].map(([, name, count]) => [name, Number(count)]));
const names = ["committed", "rolled_back", "sent", "consumed", "duplicates", "lost", "phantom"];
const problems = [
  status === 0 ? "" : `exit status ${status}`,
  ...names.map((name) => (name in counts ? "" : `the last line says no ${name}=`)),
  counts.committed > 0 ? "" : "no order was committed",
  counts.rolled_back > 0 ? "" : "no transaction was rolled back",
  counts.consumed === counts.committed ? "" : "not everything was consumed",
  counts.lost === 0 && counts.phantom === 0 ? "" : "lost or phantom messages",
].filter((problem) => problem !== "");
if (problems.length > 0) {
  console.error(`demo: ${problems.join("; ")}`);
  process.exitCode = 1;
}
