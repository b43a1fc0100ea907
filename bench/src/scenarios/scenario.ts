import type { BenchArguments } from "../arguments.ts";
import type { RawStatements } from "../raw/statements.ts";
import type { BenchResult } from "../results/result.ts";
import type { BenchDatabase } from "../servers/server.ts";

/** Context of a scenario. The database is new, migrated and empty. */
export interface BenchContext {
  readonly database: BenchDatabase;
  /**
   * Creates another database on the same server, with our tables by default; dropped at the end
   * like the first.
   */
  another(options?: { readonly migrated: boolean }): Promise<BenchDatabase>;
  readonly statements: RawStatements;
  readonly options: BenchArguments;
  /** Prints progress to standard error. */
  progress(text: string): void;
  report(result: BenchResult): void;
}

export interface Scenario {
  /** Values of `--variant`; empty: it is measured as a whole. */
  readonly variants: readonly string[];
  readonly measure: (context: BenchContext) => Promise<void>;
}

export function wanted({ options }: BenchContext, variant: string): boolean {
  return options.variants.length === 0 || options.variants.includes(variant);
}

/**
 * Runs `raw` and `ours` in turn, `runs` times; raw first, so that each of our runs has its own raw
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

/** The same, with progress. */
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
