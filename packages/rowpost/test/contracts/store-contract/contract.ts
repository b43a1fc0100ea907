/**
 * The store contract suite: the doc comments of `relay/store.ts`, `outbox/message-writer.ts`,
 * `outbox/confirmations.ts` and `admin/message-admin.ts`, and the table of transitions, as cases
 * that run on any database with the real engine behind it.
 */
import { inTime } from "../../../src/testing/contract-run.ts";
import type { StoreBench } from "./bench.ts";
import type { StoreContractCase } from "./case.ts";
import { adminCases } from "./cases/admin.ts";
import { archiveCases } from "./cases/archive.ts";
import { archivePageCases } from "./cases/archive-pages.ts";
import { behindCases } from "./cases/behind.ts";
import { byHandCases } from "./cases/by-hand.ts";
import { claimCases } from "./cases/claim.ts";
import { confirmCases } from "./cases/confirm.ts";
import { copyCases } from "./cases/copies.ts";
import { enqueueCases } from "./cases/enqueue.ts";
import { explainCases } from "./cases/explain.ts";
import { fenceCases } from "./cases/fence.ts";
import { housekeepingCases } from "./cases/housekeeping.ts";
import { keyQueueCases } from "./cases/key-queues.ts";
import { layoutCases } from "./cases/layouts.ts";
import { leaseCases } from "./cases/leases.ts";
import { manyCases } from "./cases/many.ts";
import { otherMessageCases } from "./cases/other-message.ts";
import { recoverCases } from "./cases/recover.ts";
import { scanCases } from "./cases/scan.ts";
import { settleCases } from "./cases/settle.ts";
import { suspensionCases } from "./cases/suspensions.ts";
import { timeCases } from "./cases/time.ts";
import { topicCases } from "./cases/topics.ts";
import { transitionCases } from "./cases/transitions.ts";
import { unconfirmedCases } from "./cases/unconfirmed.ts";
import { unknownCases } from "./cases/unknown.ts";
import { createStoreContext } from "./context.ts";
import { unmetStoreNeed } from "./harness.ts";

/** Every case, in the order in which they are best read and run. */
export const storeContract: readonly StoreContractCase[] = [
  ...enqueueCases,
  ...scanCases,
  ...topicCases,
  ...keyQueueCases,
  ...claimCases,
  ...settleCases,
  ...confirmCases,
  ...unconfirmedCases,
  ...unknownCases,
  ...fenceCases,
  ...otherMessageCases,
  ...leaseCases,
  ...recoverCases,
  ...housekeepingCases,
  ...behindCases,
  ...archiveCases,
  ...archivePageCases,
  ...adminCases,
  ...suspensionCases,
  ...byHandCases,
  ...copyCases,
  ...manyCases,
  ...explainCases,
  ...timeCases,
  ...layoutCases,
  ...transitionCases,
];

/**
 * Why this case does not apply to the database that the bench is open on; undefined when it does.
 */
export function storeSkipReason(contractCase: StoreContractCase, bench: StoreBench): string | undefined {
  for (const need of contractCase.needs ?? []) {
    const reason = unmetStoreNeed(need, bench.harness, bench.facts);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/**
 * Runs one case on emptied tables. Rejects when the contract is not kept, or when the case does not
 * end within the harness's time.
 */
export async function runStoreCase(contractCase: StoreContractCase, bench: StoreBench): Promise<void> {
  await bench.reset();
  const atEnd: (() => Promise<void>)[] = [];
  try {
    await inTime(contractCase.run(createStoreContext(bench, atEnd)), bench.harness.caseTimeoutMs ?? 20_000);
  } finally {
    for (const work of atEnd) await work();
  }
}
