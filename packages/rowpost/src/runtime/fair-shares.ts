/**
 * Places shared by many destinations, so that a slow or hung one cannot take them all: each may
 * hold at most as many as are free now (the "dynamic threshold" of shared-memory switches). A
 * single destination gets half of the capacity, and if it hangs the other half stays free; k that
 * fill up together get 1/(k+1) each and leave as much. Nothing is reserved, and the number of
 * destinations need not be known.
 *
 * The capacity is therefore twice the width that one destination may use alone.
 */

export interface FairShares {
  /** How much more the key may take now. */
  free(key: string): number;
  /**
   * Counts it, even beyond what is free: anything larger than a share goes alone, when the caller
   * decides.
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
      // Taken one by one while the key holds less than is free; so a key that holds none can take the
      // last place.
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
