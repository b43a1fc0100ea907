import type { StoreCaseContext } from "./context.ts";
import type { StoreNeed } from "./harness.ts";

/** One case of the contract. */
export interface StoreContractCase {
  /** A sentence that is true of a store that passes. Unique. */
  readonly name: string;
  /** What it cannot do without; skipped, with the reason, when the harness has it not. */
  readonly needs?: readonly StoreNeed[] | undefined;
  /** Rejects, with an AssertionError in words, when the store does not keep the contract. */
  run(context: StoreCaseContext): Promise<void>;
}
