/** For what must pass locked rows over instead of waiting for them. */
import { until } from "../../../src/testing/contract-run.ts";
import type { PutRow, StoreCaseContext } from "./context.ts";

/**
 * Does something while another connection holds a row, and fails when it has not come to its end
 * before the row is free.
 */
export async function endsUnderLock<T>(context: StoreCaseContext, row: PutRow, work: () => Promise<T>): Promise<T> {
  let ended = false;
  return await context.whileLocked([row], {
    waiters: 0,
    start: () =>
      work().finally(() => {
        ended = true;
      }),
    meanwhile: () => until("it ends while the row is held", () => Promise.resolve(ended), { withinMs: 4_000 }),
  });
}
