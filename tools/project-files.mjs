import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

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
 * Files that are made from sources: written with `--write`, else compared.
 *
 * @param {{ file: string, text: string }[]} made what each should be
 * @param {string} otherwise what is wrong with one that is not so, and how it is made
 * @returns {string[]} problems
 */
export function madeFiles(made, otherwise) {
  if (!process.argv.includes("--write"))
    return made
      .filter(({ file, text }) => !existsSync(file) || readFileSync(file, "utf8") !== text)
      .map(({ file }) => `${file} ${otherwise}`);
  for (const { file, text } of made) writeFileSync(file, text);
  return [];
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
