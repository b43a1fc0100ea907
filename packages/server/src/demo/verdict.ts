export interface Verdict {
  readonly committed: number;
  readonly rolledBack: number;
  readonly sent: number;
  readonly consumed: number;
  /** Repeated orders: "at least once" allows them, and the inbox skips them. */
  readonly duplicates: number;
  readonly lost: number;
  /** Surplus effects: of orders that did not commit, and second ones. */
  readonly phantom: number;
}

export function judge(
  effects: ReadonlyMap<string, number>,
  committed: ReadonlySet<string>,
): Pick<Verdict, "committed" | "lost" | "phantom"> {
  let lost = 0;
  for (const orderNo of committed) if (!effects.has(orderNo)) lost += 1;
  let phantom = 0;
  for (const [orderNo, count] of effects) phantom += count - (committed.has(orderNo) ? 1 : 0);
  return { committed: committed.size, lost, phantom };
}

export function verdictLine({ committed, rolledBack, sent, consumed, duplicates, lost, phantom }: Verdict): string {
  return `committed=${committed} rolled_back=${rolledBack} sent=${sent} consumed=${consumed} duplicates=${duplicates} lost=${lost} phantom=${phantom}`;
}

/** All committed orders were sent, took effect once and were confirmed, and nothing else. */
export function isGood({ committed, sent, consumed, lost, phantom }: Verdict): boolean {
  return lost === 0 && phantom === 0 && sent === committed && consumed === committed;
}
