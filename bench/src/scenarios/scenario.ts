/**
 * What a scenario is: a name, what it needs, and a function that measures and returns its lines.
 */
import type { BenchArguments } from "../arguments.ts";
import type { RawStatements } from "../raw/statements.ts";
import type { BenchResult } from "../results/result.ts";
import type { BenchDatabase } from "../servers/server.ts";

/** What a scenario is given. The database is new, migrated and empty. */
export interface BenchContext {
  readonly database: BenchDatabase;
  /**
   * Makes one more database on the same server, with our tables unless told otherwise; dropped at
   * the end like the first.
   */
  another(options?: { readonly migrated: boolean }): Promise<BenchDatabase>;
  readonly statements: RawStatements;
  readonly options: BenchArguments;
  /** Tells people what happens; goes to standard error. */
  progress(text: string): void;
  /** Prints and keeps a line as soon as it is measured. */
  report(result: BenchResult): void;
}

/** What a name on the command line stands for. */
export interface Scenario {
  /** What `--variant` picks from; empty: it is measured as a whole. */
  readonly variants: readonly string[];
  readonly measure: (context: BenchContext) => Promise<void>;
}

/** Whether a variant was asked for. */
export function wanted({ options }: BenchContext, variant: string): boolean {
  return options.variants.length === 0 || options.variants.includes(variant);
}

/**
 * Runs `raw` and `ours` in turn, `runs` times; raw first, so that each run of ours has its own raw
 * run right before it.
 */
export async function inTurn<T>(
  runs: number,
  raw: (run: number) => Promise<T>,
  ours: (run: number) => Promise<T>,
): Promise<{ readonly raw: T[]; readonly ours: T[] }> {
  const results: { raw: T[]; ours: T[] } = { raw: [], ours: [] };
  for (let run = 0; run < runs; run += 1) {
    results.raw.push(await raw(run));
    results.ours.push(await ours(run));
  }
  return results;
}

/** The same, and says which run it is at. */
export function inTurnTold<T>(
  context: BenchContext,
  raw: () => Promise<T>,
  ours: () => Promise<T>,
): Promise<{ readonly raw: T[]; readonly ours: T[] }> {
  const { runs } = context.options;
  const told = (name: string, work: () => Promise<T>) => (run: number) => {
    context.progress(`${name} ${run + 1} of ${runs}`);
    return work();
  };
  return inTurn(runs, told("raw", raw), told("ours", ours));
}
