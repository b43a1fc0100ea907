import { afterAll, beforeAll, describe, test } from "vitest";
import {
  openStoreBench,
  runStoreCase,
  type StoreBench,
  type StoreHarness,
  storeContract,
  storeSkipReason,
} from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { LAYOUTS, mysqlHarness, postgresHarness, sqliteHarness } from "./store-harnesses.ts";

describeWithService(["mariadb", "mysql9", "mysql8"], "store contract", ({ name }) => {
  for (const layout of LAYOUTS) bindStoreContract(`${layout.name}, mysql2`, () => mysqlHarness(name, "mysql2", layout));
});

describeWithService("mariadb", "store contract", ({ name }) => {
  for (const layout of LAYOUTS.slice(0, 1)) {
    bindStoreContract(`${layout.name}, mariadb driver`, () => mysqlHarness(name, "mariadb", layout));
  }
});

describeWithService("postgres", "store contract", () => {
  for (const layout of LAYOUTS) bindStoreContract(layout.name, () => postgresHarness(layout));
});

describe("store contract on sqlite", () => {
  for (const layout of LAYOUTS) bindStoreContract(`${layout.name}, file`, () => sqliteHarness("file", layout));
  for (const layout of LAYOUTS.slice(0, 1))
    bindStoreContract(`${layout.name}, :memory:`, () => sqliteHarness("memory", layout));
});

/**
 * Makes a vitest test of each case of the store contract. The database is made once, before the
 * first case, and dropped after the last.
 */
function bindStoreContract(title: string, createHarness: () => StoreHarness | Promise<StoreHarness>): void {
  describe(title, () => {
    let harness: StoreHarness | undefined;
    let bench: StoreBench | undefined;
    const skipped = new Map<string, number>();
    beforeAll(async () => {
      harness = await createHarness();
      bench = await openStoreBench(harness);
    });
    afterAll(async () => {
      for (const [reason, cases] of skipped) console.log(`skipped: ${harness?.name}: ${cases} cases: ${reason}`);
      await bench?.close();
      await harness?.close?.();
    });
    for (const contractCase of storeContract) {
      // Longer than the case's own limit, which says what was waited for.
      test(contractCase.name, { timeout: 40_000 }, async ({ skip }) => {
        if (bench === undefined) throw new Error("the database was not opened");
        const reason = storeSkipReason(contractCase, bench);
        if (reason !== undefined) {
          skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
          skip(reason);
        }
        await runStoreCase(contractCase, bench);
      });
    }
  });
}
