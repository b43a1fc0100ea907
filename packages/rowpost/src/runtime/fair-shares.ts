/**
 * Places shared by many destinations: each may hold at most as many as are free now (the "dynamic
 * threshold" of shared-memory switches). A single destination gets half of the capacity, and if it
 * hangs the other half stays free; k that fill up together get 1/(k+1) each and leave as much.
 * Nothing is reserved, and the number of destinations need not be known.
 *
 * So the capacity is twice the width of one destination.
 */

export interface FairShares {
  /** How much more the key may take now. */
  free(key: string): number;
  /** May exceed what is free: anything larger than a share goes alone, when the caller decides. */
  take(key: string, amount: number): void;
  giveBack(key: string, amount: number): void;
  /** Of all keys together. */
  readonly used: number;
  usedBy(key: string): number;
}

/** In any unit: messages, requests, bytes. */
export function createFairShares({ capacity }: { readonly capacity: number }): FairShares {
  const byKey = new Map<string, { amount: number }>();
  let used = 0;
  const usedBy = (key: string): number => byKey.get(key)?.amount ?? 0;

  return {
    free(key) {
      // Taken one by one while the key holds less than is free.
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
