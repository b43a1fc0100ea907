import type { BrokerCaseContext } from "./context.ts";
import type { BrokerNeed } from "./harness.ts";

/** One case of the contract. */
export interface BrokerContractCase {
  /** A sentence that is true of an adapter that passes. Unique. */
  readonly name: string;
  /** What it cannot do without; skipped, with the reason, when the harness has it not. */
  readonly needs?: readonly BrokerNeed[] | undefined;
  /** Without the harness's own waiting times. Default 20,000. */
  readonly timeoutMs?: number | undefined;
  /** Rejects, with an AssertionError in words, when the adapter does not keep the contract. */
  run(context: BrokerCaseContext): Promise<void>;
}
