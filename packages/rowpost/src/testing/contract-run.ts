/** Shared by the contract suites: time limits, polling, and a run without a test framework. */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";

/** Results of the cases. */
export interface ContractReport {
  /** Names of the cases. */
  readonly passed: readonly string[];
  /** Failed cases with their errors. */
  readonly failed: readonly { readonly name: string; readonly error: unknown }[];
  /** Skipped cases with the reasons. */
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
}

/** Options of a run without a test framework. */
export interface RunContractOptions {
  /** Prints one line for each case. Default: console.log. */
  readonly print?: ((line: string) => void) | undefined;
}

export interface ContractRun<Case extends { readonly name: string }> extends RunContractOptions {
  readonly name: string;
  readonly cases: readonly Case[];
  /** Why the case does not apply; undefined if it applies. */
  skipReason(contractCase: Case): string | undefined;
  /** Rejects if the contract is violated. */
  run(contractCase: Case): Promise<void>;
}

/** Runs the cases sequentially and reports. Does not reject for a failed case. */
export async function reportCases<Case extends { readonly name: string }>(
  suite: ContractRun<Case>,
): Promise<ContractReport> {
  const print = suite.print ?? ((line: string) => console.log(line));
  const passed: string[] = [];
  const failed: { name: string; error: unknown }[] = [];
  const skipped: { name: string; reason: string }[] = [];
  for (const contractCase of suite.cases) {
    const { name } = contractCase;
    const reason = suite.skipReason(contractCase);
    if (reason !== undefined) {
      skipped.push({ name, reason });
      print(`skip  ${suite.name}: ${name} (${reason})`);
      continue;
    }
    try {
      await suite.run(contractCase);
      passed.push(name);
      print(`ok    ${suite.name}: ${name}`);
    } catch (error) {
      failed.push({ name, error });
      print(`FAIL  ${suite.name}: ${name}: ${String(error)}`);
    }
  }
  return { passed, failed, skipped };
}

/** Rejects if the case does not end in time. */
export async function inTime(run: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`the case did not end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([run, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Polls until `isTrue` returns true, every `everyMs` (default 5), for at most `withinMs` (default
 * 5,000).
 */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  options: { readonly withinMs?: number | undefined; readonly everyMs?: number | undefined } = {},
): Promise<void> {
  const { withinMs = 5_000, everyMs = 5 } = options;
  const giveUpAt = performance.now() + withinMs;
  while (!(await isTrue())) {
    assert.ok(performance.now() < giveUpAt, `${what}: not within ${withinMs} ms`);
    await delay(everyMs);
  }
}
