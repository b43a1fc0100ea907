/** What a run came to: the consumer's own table, compared with the shop's. */

export interface Verdict {
  readonly committed: number;
  readonly rolledBack: number;
  /** The broker has them. */
  readonly sent: number;
  readonly consumed: number;
  /** Times that an order came again: "at least once" allows it, and the inbox passes them over. */
  readonly duplicates: number;
  /** Committed, and without effect. */
  readonly lost: number;
  /** Effects too many: of orders that did not commit, and second ones. */
  readonly phantom: number;
}

/** Compares the effects of each order with the orders that are in the shop's table. */
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

/** The last line of `rowpost demo`, for scripts. */
export function verdictLine({ committed, rolledBack, sent, consumed, duplicates, lost, phantom }: Verdict): string {
  return `committed=${committed} rolled_back=${rolledBack} sent=${sent} consumed=${consumed} duplicates=${duplicates} lost=${lost} phantom=${phantom}`;
}

/** Everything that committed was sent, took effect once and was confirmed, and nothing else. */
export function isGood({ committed, sent, consumed, lost, phantom }: Verdict): boolean {
  return lost === 0 && phantom === 0 && sent === committed && consumed === committed;
}
