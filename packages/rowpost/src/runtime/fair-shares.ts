/**
 * Places that many destinations share, so that a slow or hung one cannot take them all: each may
 * hold at most as many as are free now (the "dynamic threshold" of shared-memory switches). One
 * destination alone gets half of the capacity, and when it hangs the other half stays free; k that
 * fill up together get 1/(k+1) each and leave as much. Nothing is set aside for anyone, and nobody
 * has to be told how many destinations there are.
 *
 * So the capacity is twice the width that one destination may use alone.
 */

export interface FairShares {
  /** How much more the key may take now. */
  free(key: string): number;
  /**
   * Counts it, more than is free included: what is larger than any share goes alone, and the caller
   * decides when.
   */
  take(key: string, amount: number): void;
  giveBack(key: string, amount: number): void;
  /** Of all keys together. */
  readonly used: number;
  usedBy(key: string): number;
}

/** In any unit: messages, requests, bytes. Only keys that hold something are remembered. */
export function createFairShares({ capacity }: { readonly capacity: number }): FairShares {
  const byKey = new Map<string, { amount: number }>();
  let used = 0;
  const usedBy = (key: string): number => byKey.get(key)?.amount ?? 0;

  return {
    free(key) {
      // One by one, each taken while the key holds less than is free; so the last place is
      // anybody's who holds none.
      return Math.max(0, Math.ceil((capacity - used - usedBy(key)) / 2));
    },
    take(key, amount) {
      used += amount;
      const held = byKey.get(key);
      if (held === undefined) byKey.set(key, { amount });
      else held.amount += amount;
    },
    giveBack(key, amount) {
      const held = byKey.get(key);
      if (held === undefined) return;
      used -= amount;
      held.amount -= amount;
      if (held.amount <= 0) byKey.delete(key);
    },
    get used() {
      return used;
    },
    usedBy,
  };
}
