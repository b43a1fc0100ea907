/**
 * Counts that alert when they grow: failed messages of a topic, dead letters of a group. Those
 * found by the first look are old, and alert only from the critical number on.
 */

/**
 * By subject. `count`: last seen, of the newest if only a part is looked at; `known`: at least this
 * many exist; `roseMs`: time of the last growth, by the lifecycle's clock.
 */
export type Growth = Readonly<Record<string, Grown>>;

interface Grown {
  readonly count: number;
  readonly known?: number;
  readonly roseMs: number | null;
}

export interface Counted {
  readonly subject: string;
  readonly count: number;
}

const WINDOW_MS = 300_000;

/**
 * Judges each subject by itself. If only a part is looked at, a subject missing from it keeps its
 * state, and one that grew recently and shows no less counts as growing: nothing ends because it is
 * not seen.
 */
export function growthOf(
  before: Growth | null,
  seen: readonly Counted[],
  { clockMs, isPart, windowMs = WINDOW_MS }: { clockMs: number; isPart: boolean; windowMs?: number | undefined },
): Growth {
  const now = seen.map(({ count, subject }) => {
    const { count: last = 0, known = last, roseMs = null } = before?.[subject] ?? {};
    // At the first look the counts may be old. A new subject has grown.
    const hasRisen = before !== null && count > last;
    const goesOn = isPart && count === last && roseMs !== null && clockMs - roseMs < windowMs;
    const most = isPart ? Math.max(known, count) : count;
    return [subject, { count, known: most, roseMs: hasRisen || goesOn ? clockMs : roseMs }] as const;
  });
  const unseen = isPart ? Object.entries(before ?? {}).filter(([subject]) => subject !== "") : [];
  const kept = unseen.map(([subject, last]) => [subject, { ...last, known: last.known ?? last.count, count: 0 }]);
  return Object.fromEntries([...kept, ...now]);
}

/** Alerts if it grew within the window or reaches the critical number. */
export function gradeOf(
  { count, known = count, roseMs }: Grown,
  settings: { readonly criticalFrom?: number | undefined; readonly windowMs?: number | undefined } | undefined,
  clockMs: number,
): { readonly severity: "warning" | "critical"; readonly value: number } | undefined {
  const { criticalFrom = 100, windowMs = WINDOW_MS } = settings ?? {};
  const isNew = roseMs !== null && clockMs - roseMs < windowMs;
  if (!isNew && known < criticalFrom) return undefined;
  return { severity: known >= criticalFrom ? "critical" : "warning", value: known };
}
