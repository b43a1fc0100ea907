import { execFileSync } from "node:child_process";

/**
 * The files of the project that git has or would take: tracked ones and new ones, without what
 * .gitignore names.
 *
 * @param {string[]} pathspecs git's patterns, such as `*.ts`; none = every file
 * @returns {string[]} paths from the root of the repository
 */
export function projectFiles(...pathspecs) {
  const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", ...pathspecs];
  const deleted = new Set(git(["ls-files", "-z", "--deleted"]));
  return git(list).filter((path) => !deleted.has(path));
}

/** @param {string[]} options */
function git(options) {
  const text = execFileSync("git", options, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  return text.split("\0").filter((path) => path !== "");
}

/**
 * Prints what a gate found and sets the exit code.
 *
 * @param {string} gate name for the last line
 * @param {string[]} problems one line each
 * @param {string} checked what was looked at, such as `120 files`
 */
export function report(gate, problems, checked) {
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
  console.log(`${gate}: ${problems.length === 0 ? "ok" : `${problems.length} problem(s)`}, ${checked}`);
}
