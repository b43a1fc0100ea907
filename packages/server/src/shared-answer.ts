/** Shares one answer for a while, so that twenty viewers cost as much as one. */

/** Loads, or returns a recent or running load. */
export type Shared<T> = () => Promise<T>;

/** Kept for this long; a failure is not kept. */
export function createShared<T>(keepMs: number, load: () => Promise<T>, now = () => performance.now()): Shared<T> {
  let kept: { readonly answer: Promise<T>; untilMs: number } | undefined;
  return () => {
    if (kept !== undefined && now() < kept.untilMs) return kept.answer;
    // A slow database gets no second request beside the first.
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
