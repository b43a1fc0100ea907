/**
 * What the consumer really received: written by the consumer alone, and compared with the shop's
 * table in the end.
 */
import { isOfRun } from "./tables.ts";

export interface Ledger {
  /** The consumer has this order. Orders of other runs are not counted. */
  receive(orderNo: string): void;
  /** Different orders. */
  readonly received: number;
  /** Times that an order came again: "at least once" allows it. */
  readonly duplicates: number;
  has(orderNo: string): boolean;
  all(): IterableIterator<string>;
}

export function createLedger(run: string): Ledger {
  const orders = new Set<string>();
  let duplicates = 0;
  return {
    receive(orderNo) {
      if (!isOfRun(run, orderNo)) return;
      if (orders.has(orderNo)) duplicates += 1;
      orders.add(orderNo);
    },
    get received() {
      return orders.size;
    },
    get duplicates() {
      return duplicates;
    },
    has: (orderNo) => orders.has(orderNo),
    all: () => orders.values(),
  };
}

/** What a run came to. */
export interface Verdict {
  readonly committed: number;
  readonly rolledBack: number;
  readonly sent: number;
  readonly failed: number;
  /** Committed, and never received. */
  readonly lost: number;
  /** Received, though their transactions did not commit. */
  readonly phantom: number;
}

/** Compares the ledger with the orders that are in the shop's table. */
export function judge(ledger: Ledger, committed: ReadonlySet<string>): Pick<Verdict, "committed" | "lost" | "phantom"> {
  let lost = 0;
  for (const orderNo of committed) if (!ledger.has(orderNo)) lost += 1;
  let phantom = 0;
  for (const orderNo of ledger.all()) if (!committed.has(orderNo)) phantom += 1;
  return { committed: committed.size, lost, phantom };
}

/** The last line of `rowpost demo`, for scripts. */
export function verdictLine({ committed, rolledBack, sent, failed, lost, phantom }: Verdict): string {
  return `committed=${committed} rolled_back=${rolledBack} sent=${sent} failed=${failed} lost=${lost} phantom=${phantom}`;
}

/** Everything that committed was sent and received, and nothing else. */
export function isGood({ committed, sent, failed, lost, phantom }: Verdict): boolean {
  return lost === 0 && phantom === 0 && failed === 0 && sent === committed;
}
