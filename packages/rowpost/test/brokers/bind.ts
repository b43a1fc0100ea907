import { afterAll, beforeAll, describe, test } from "vitest";
import type { BrokerHarness } from "../../src/testing/index.ts";
import { brokerContract, runBrokerCase, skipReason } from "../../src/testing/index.ts";

/**
 * Makes a vitest test of each case of the broker contract. The harness is made once, before the
 * first case, and closed after the last.
 */
export function bindBrokerContract(title: string, createHarness: () => BrokerHarness | Promise<BrokerHarness>): void {
  describe(`broker contract: ${title}`, () => {
    let harness: BrokerHarness | undefined;
    beforeAll(async () => {
      harness = await createHarness();
    });
    afterAll(async () => {
      await harness?.close?.();
    });
    for (const contractCase of brokerContract) {
      // Longer than any case's own limit, which says what was waited for.
      test(contractCase.name, { timeout: 180_000 }, async ({ skip }) => {
        if (harness === undefined) throw new Error("the harness was not made");
        const reason = skipReason(contractCase, harness);
        if (reason !== undefined) {
          console.log(`skipped: ${harness.name}: ${contractCase.name}: ${reason}`);
          skip(reason);
        }
        await runBrokerCase(contractCase, harness);
      });
    }
  });
}
