import {
  openQueueBench,
  type QueueStoreHarness,
  queueContract,
  queueSkipReason,
  runQueueCase,
} from "../../src/testing/index.ts";
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
