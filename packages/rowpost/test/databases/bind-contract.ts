/** Contract suites that run on an open bench, as tests of vitest. */
import { afterAll, beforeAll, describe, test } from "vitest";

/** A suite: its cases, and how one of them is run. */
export interface BoundContract<Case, Harness, Bench> {
  readonly cases: readonly Case[];
  openBench(harness: Harness): Promise<Bench>;
  skipReason(contractCase: Case, bench: Bench): string | undefined;
  runCase(contractCase: Case, bench: Bench): Promise<void>;
}

/**
 * Makes a test of each case. The database is made once, before the first case, and dropped after
 * the last.
 */
export function bindContract<
  Case extends { readonly name: string },
  Harness extends { readonly name: string; close?(): Promise<void> },
  Bench extends { close(): Promise<void> },
>(title: string, createHarness: () => Harness | Promise<Harness>, contract: BoundContract<Case, Harness, Bench>): void {
  describe(title, () => {
    let harness: Harness | undefined;
    let bench: Bench | undefined;
    const skipped = new Map<string, number>();
    beforeAll(async () => {
      harness = await createHarness();
      bench = await contract.openBench(harness);
    });
    afterAll(async () => {
      for (const [reason, count] of skipped) console.log(`skipped: ${harness?.name}: ${count} cases: ${reason}`);
      await bench?.close();
      await harness?.close?.();
    });
    for (const contractCase of contract.cases) {
      // Longer than the case's own limit, which says what was waited for.
      test(contractCase.name, { timeout: 40_000 }, async ({ skip }) => {
        if (bench === undefined) throw new Error("the database was not opened");
        const reason = contract.skipReason(contractCase, bench);
        if (reason !== undefined) {
          skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
          skip(reason);
        }
        await contract.runCase(contractCase, bench);
      });
    }
  });
}
