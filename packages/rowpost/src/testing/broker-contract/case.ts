import type { BrokerCaseContext } from "./context.ts";
import type { BrokerNeed } from "./harness.ts";

/** One case of the contract. */
export interface BrokerContractCase {
  /** A unique sentence that is true if the adapter passes. */
  readonly name: string;
  /** Required features; without them the case is skipped with the reason. */
  readonly needs?: readonly BrokerNeed[] | undefined;
  /** In ms, without the harness's waiting times. Default 20,000. */
  readonly timeoutMs?: number | undefined;
  /** Rejects with a descriptive AssertionError if the adapter violates the contract. */
  run(context: BrokerCaseContext): Promise<void>;
}
