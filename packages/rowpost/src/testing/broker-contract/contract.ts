/**
 * The broker contract suite: the doc comments of `brokers/broker.ts` as cases that run on any
 * adapter with its real server behind it.
 *
 * It needs no test framework. With one, make a test of each case of {@link brokerContract};
 * without, call {@link runBrokerContract}.
 */
import type { ContractReport, RunContractOptions } from "../contract-run.ts";
import { inTime, reportCases } from "../contract-run.ts";
import type { BrokerContractCase } from "./case.ts";
import { arrivalCases } from "./cases/arrival.ts";
import { deadlineCases } from "./cases/deadline.ts";
import { failureCases } from "./cases/failure.ts";
import { lifecycleCases } from "./cases/lifecycle.ts";
import { orderCases } from "./cases/order.ts";
import { outageCases } from "./cases/outage.ts";
import { createCaseContext } from "./context.ts";
import type { BrokerHarness } from "./harness.ts";
import { unmetNeed } from "./harness.ts";

/** All cases, in the recommended order. */
export const brokerContract: readonly BrokerContractCase[] = [
  ...arrivalCases,
  ...orderCases,
  ...failureCases,
  ...deadlineCases,
  ...outageCases,
  ...lifecycleCases,
];

/**
 * Why this case does not apply to the harness; undefined if it applies. A gap in the harness is no
 * reason: the case then fails.
 */
export function skipReason(contractCase: BrokerContractCase, harness: BrokerHarness): string | undefined {
  for (const need of contractCase.needs ?? []) {
    const unmet = unmetNeed(need, harness);
    if (unmet !== undefined && !unmet.isGap) return unmet.reason;
  }
  return undefined;
}

/**
 * Time limit of a case in ms. Set a test framework's own limit higher, because this one has better
 * messages.
 */
export function caseTimeoutMs(contractCase: BrokerContractCase, harness: BrokerHarness): number {
  const { consumeWithinMs = 20_000, recoverWithinMs = 10_000 } = harness;
  return (contractCase.timeoutMs ?? 20_000) + consumeWithinMs + 2 * recoverWithinMs;
}

/**
 * Runs one case with a broker of its own, which is closed afterwards; faults are taken back.
 * Rejects when the contract is not kept, or after {@link caseTimeoutMs}.
 */
export async function runBrokerCase(contractCase: BrokerContractCase, harness: BrokerHarness): Promise<void> {
  await inTime(runWithBroker(contractCase, harness), caseTimeoutMs(contractCase, harness));
}

async function runWithBroker(contractCase: BrokerContractCase, harness: BrokerHarness): Promise<void> {
  for (const need of contractCase.needs ?? []) {
    const unmet = unmetNeed(need, harness);
    if (unmet !== undefined) throw new Error(`cannot run "${contractCase.name}": ${unmet.reason}`);
  }
  const broker = await harness.createBroker();
  try {
    await contractCase.run(createCaseContext(harness, broker));
  } finally {
    harness.faults?.unmute();
    await harness.faults?.accept();
    await broker.close();
  }
}

/**
 * Runs the whole contract sequentially and reports. Does not reject for a failed case, and does not
 * close the harness.
 */
export function runBrokerContract(harness: BrokerHarness, options: RunContractOptions = {}): Promise<ContractReport> {
  return reportCases({
    ...options,
    name: harness.name,
    cases: brokerContract,
    skipReason: (contractCase) => skipReason(contractCase, harness),
    run: (contractCase) => runBrokerCase(contractCase, harness),
  });
}
