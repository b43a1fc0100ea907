/** Brings a topic's backed-off messages forward, batch by batch. */

const BATCH = 500;
/** A million rows: new messages could keep it running. */
const MOST_BATCHES = 2_000;

/** Repeats until a batch is not full; returns the total. */
export async function resetBackoff(
  step: (batch: { readonly limit: number; readonly stepMs: number }) => Promise<number>,
): Promise<number> {
  let total = 0;
  for (let batch = 0; batch < MOST_BATCHES; batch += 1) {
    const count = await step({ limit: BATCH, stepMs: 1 });
    total += count;
    if (count < BATCH) break;
  }
  return total;
}
