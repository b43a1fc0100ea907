/** One answer for all who ask within a while: twenty viewers cost what one does. */

/** Loads, or gives what was loaded lately; those who ask meanwhile wait for the same one. */
export type Shared<T> = () => Promise<T>;

/** Kept for so long after it is there; a failure is not kept. */
export function createShared<T>(keepMs: number, load: () => Promise<T>, now = () => performance.now()): Shared<T> {
  let kept: { readonly answer: Promise<T>; untilMs: number } | undefined;
  return () => {
    if (kept !== undefined && now() < kept.untilMs) return kept.answer;
    // A slow database gets no second one beside the first.
    const mine = { answer: load(), untilMs: Number.POSITIVE_INFINITY };
    kept = mine;
    mine.answer.then(
      () => {
        mine.untilMs = now() + keepMs;
      },
      () => {
        if (kept === mine) kept = undefined;
      },
    );
    return mine.answer;
  };
}
