/**
 * Adds up the JSON reports that the vitest runs of all steps left, names what failed, and prints
 * the last line of CI. A skipped test has failed.
 *
 *   node .ci/count.mjs REPORTS_FOLDER STEPS_FILE
 *
 * Exit status: 0 when nothing failed, else 1.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { stripVTControlCharacters } from "node:util";

const [folder, stepsFile] = process.argv.slice(2);
let passed = 0;
let failed = 0;
/**
 * Cases of the exported contracts that a broker, a table or a database cannot have, by contract;
 * each has its reason in the log above.
 */
const inapplicable = new Map();
const CONTRACT = /(?:broker|queue|store) contract/;
/** What a step asks for by `-t`. Vitest reports the rest of its files as skipped. */
const ASKED = { "postgres-plans": /postgres/ };
const failures = [];

/** Where and why, in few lines: what follows in the stack is in the log above. */
const reasonOf = (messages) =>
  stripVTControlCharacters(messages.join("\n"))
    .split("\n")
    .filter((line) => line.trim() !== "" && (!/^\s+at /.test(line) || /\.test\.ts|\.cases\.ts|\/cases\//.test(line)))
    .slice(0, 12)
    .map((line) => `         ${line.slice(0, 300)}`)
    .join("\n");

/** A file that could not even be loaded has no tests and still failed. */
function countReport(report, step) {
  let count = 0;
  for (const file of report.testResults) {
    const title = `${step}: ${relative(process.cwd(), file.name)}`;
    let red = 0;
    for (const test of file.assertionResults) {
      if (ASKED[step]?.test(test.fullName) === false) continue;
      if (test.status === "passed") passed += 1;
      else if (test.status === "failed") {
        red += 1;
        failures.push(`FAILED   ${title}: ${test.fullName}\n${reasonOf(test.failureMessages ?? [])}`);
      } else if (CONTRACT.test(test.fullName)) {
        const contract = test.ancestorTitles.filter((each) => each !== "").join(", ");
        inapplicable.set(contract, (inapplicable.get(contract) ?? 0) + 1);
      } else {
        red += 1;
        failures.push(`FAILED   ${title}: ${test.fullName}\n         skipped, and CI skips nothing`);
      }
    }
    if (file.status === "failed" && red === 0) {
      red = 1;
      failures.push(`FAILED   ${title}\n${reasonOf([file.message ?? ""])}`);
    }
    count += red;
  }
  return count;
}

for (const line of readFileSync(stepsFile, "utf8").split("\n").filter(Boolean)) {
  const name = line.split(" ")[0];
  const reports = existsSync(join(folder, name))
    ? readdirSync(join(folder, name)).filter((file) => file.endsWith(".json"))
    : [];
  let count = 0;
  for (const file of reports) count += countReport(JSON.parse(readFileSync(join(folder, name, file), "utf8")), name);
  if (line.includes("RED") && count === 0) {
    count = 1;
    failures.push(`FAILED   step ${name}`);
  }
  failed += count;
}
for (const [contract, cases] of inapplicable) console.log(`${contract}: ${cases} cases do not apply`);
process.stdout.write(readFileSync(stepsFile, "utf8"));
// Last, where whoever reads only the end of the log sees them.
for (const failure of failures) console.log(failure);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
