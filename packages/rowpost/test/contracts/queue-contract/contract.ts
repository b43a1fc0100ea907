/**
 * The queue contract suite: the doc comments of `queue/store.ts`, and of what `queue/rooms.ts`
 * names, as cases that run on any database.
 */
import { inTime } from "../../../src/testing/contract-run.ts";
import type { QueueBench } from "./bench.ts";
import type { QueueContractCase } from "./case.ts";
import { appendCases } from "./cases/append.ts";
import { appendOrderCases } from "./cases/append-order.ts";
import { byHandCases } from "./cases/by-hand.ts";
import { groupCases } from "./cases/groups.ts";
import { joinCases } from "./cases/join.ts";
import { leaseCases } from "./cases/leases.ts";
import { milestoneCases } from "./cases/milestones.ts";
import { readCases } from "./cases/read.ts";
import { redeliveryCases } from "./cases/redelivery.ts";
import { retentionCases } from "./cases/retention.ts";
import { rewindCases } from "./cases/rewind.ts";
import { rewindRedeliveryCases } from "./cases/rewind-redelivery.ts";
import { searchCases } from "./cases/search.ts";
import { settleCases } from "./cases/settle.ts";
import { settleFenceCases } from "./cases/settle-fence.ts";
import { sourceCases } from "./cases/sources.ts";
import { topicCases } from "./cases/topics.ts";
import { verifyCases } from "./cases/verify.ts";
import { createQueueContext } from "./context.ts";
import { unmetQueueNeed } from "./harness.ts";

/** Every case, in the order in which they are best read and run. */
export const queueContract: readonly QueueContractCase[] = [
  ...topicCases,
  ...appendCases,
  ...appendOrderCases,
  ...sourceCases,
  ...joinCases,
  ...readCases,
  ...settleCases,
  ...settleFenceCases,
  ...redeliveryCases,
  ...leaseCases,
  ...groupCases,
  ...byHandCases,
  ...rewindCases,
  ...milestoneCases,
  ...rewindRedeliveryCases,
  ...searchCases,
  ...retentionCases,
  ...verifyCases,
];

/**
 * Why this case does not apply to the database that the bench is open on; undefined when it does.
 */
export function queueSkipReason(contractCase: QueueContractCase, bench: QueueBench): string | undefined {
  for (const need of contractCase.needs ?? []) {
    const reason = unmetQueueNeed(need, bench.harness, bench);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/**
 * Runs one case with a topic of its own, which is removed afterwards. Rejects when the contract is
 * not kept, or when the case does not end within the harness's time.
 */
export async function runQueueCase(contractCase: QueueContractCase, bench: QueueBench): Promise<void> {
  const atEnd: (() => Promise<unknown>)[] = [];
  const run = async (): Promise<void> => contractCase.run(await createQueueContext(bench, atEnd));
  try {
    await inTime(run(), bench.harness.caseTimeoutMs ?? 20_000);
  } finally {
    for (const work of atEnd.toReversed()) await work();
  }
}
