import { openQueueBench } from "../contracts/queue-contract/bench.ts";
import { queueContract, queueSkipReason, runQueueCase } from "../contracts/queue-contract/contract.ts";
import type { QueueStoreHarness } from "../contracts/queue-contract/harness.ts";
import { bindContract } from "../databases/bind-contract.ts";

/** Makes a test of each case of the queue contract. */
export function bindQueueContract(
  title: string,
  createHarness: () => QueueStoreHarness | Promise<QueueStoreHarness>,
): void {
  bindContract(title, createHarness, {
    cases: queueContract,
    openBench: openQueueBench,
    skipReason: queueSkipReason,
    runCase: runQueueCase,
  });
}
