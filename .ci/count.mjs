/**
 * Adds up the JSON reports that the vitest runs of all steps left, names what failed and what was skipped, and prints the last line of CI.
 *
 *   node .ci/count.mjs REPORTS_FOLDER STEPS_FILE
 *
 * Exit status: 0 when nothing failed, else 1.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

const [folder, stepsFile] = process.argv.slice(2);
let passed = 0;
let failed = 0;
const skipped = new Set();

/** A file that could not even be loaded has no tests and still failed. */
function countReport(report, step) {
  let failures = 0;
  for (const file of report.testResults) {
    const title = `${step}: ${relative(process.cwd(), file.name)}`;
    let red = 0;
    for (const test of file.assertionResults) {
      if (test.status === "passed") passed += 1;
      else if (test.status === "failed") {
        red += 1;
        console.log(`FAILED   ${title}: ${test.fullName}`);
      } else skipped.add(`${title}: ${test.fullName}`);
    }
    if (file.status === "failed" && red === 0) {
      red = 1;
      console.log(`FAILED   ${title}: ${(file.message ?? "").split("\n")[0]}`);
    }
    failures += red;
  }
  return failures;
}

for (const line of readFileSync(stepsFile, "utf8").split("\n").filter(Boolean)) {
  const name = line.split(" ")[0];
  const reports = existsSync(join(folder, name))
    ? readdirSync(join(folder, name)).filter((file) => file.endsWith(".json"))
    : [];
  let failures = 0;
  for (const file of reports) failures += countReport(JSON.parse(readFileSync(join(folder, name, file), "utf8")), name);
  if (line.includes("RED") && failures === 0) {
    failures = 1;
    console.log(`FAILED   step ${name}`);
  }
  failed += failures;
}
for (const title of skipped) console.log(`skipped  ${title}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
