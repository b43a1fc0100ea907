/**
 * Counts that are told when they grow: failed messages of a topic, dead letters of a group. What
 * was there before anybody looked is old, and told from the critical number on.
 */

/**
 * By subject. `count`: as seen last, the newest ones where only a part is looked at; `known`: so
 * many there are at least; `roseMs`: when it grew last, by the lifecycle's clock.
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
 * Each subject is judged by itself. While only a part is looked at, one that it does not show keeps
 * what is known of it, and one that grew lately and shows no less is taken for what grows on:
 * nothing is over because it is not seen.
 */
export function growthOf(
  before: Growth | null,
  seen: readonly Counted[],
  { clockMs, isPart, windowMs = WINDOW_MS }: { clockMs: number; isPart: boolean; windowMs?: number | undefined },
): Growth {
  const now = seen.map(({ count, subject }) => {
    const { count: last = 0, known = last, roseMs = null } = before?.[subject] ?? {};
    // Nobody has looked before: what there is may be old. A subject that was not there has grown.
    const hasRisen = before !== null && count > last;
    const goesOn = isPart && count === last && roseMs !== null && clockMs - roseMs < windowMs;
    const most = isPart ? Math.max(known, count) : count;
    return [subject, { count, known: most, roseMs: hasRisen || goesOn ? clockMs : roseMs }] as const;
  });
  const unseen = isPart ? Object.entries(before ?? {}).filter(([subject]) => subject !== "") : [];
  const kept = unseen.map(([subject, last]) => [subject, { ...last, known: last.known ?? last.count, count: 0 }]);
  return Object.fromEntries([...kept, ...now]);
}

/** What to tell of it: it has grown within the window, or is the critical number and more. */
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
