/** How much a broker adapter has on its way to the server, over all publish calls: a number of requests, and their bytes. */

import type { AbortScope } from "./abort-scope.ts";

/** A bounded number of requests in flight; waiting ones get their turn in the order in which they asked. */
export interface RequestSlots {
  /** Resolves to true with a slot, or to false when the scope was aborted first. */
  acquire(bytes: number, scope: AbortScope): Promise<boolean>;
  /** Gives a slot back. */
  release(bytes: number): void;
}

interface Waiter {
  readonly scope: AbortScope;
  readonly bytes: number;
  readonly start: (granted: boolean) => void;
}

/** `maxBytes` bounds memory when bodies are large: 64 requests of 4 MB would be 256 MB. A request larger than that goes alone. */
export function createRequestSlots(limits: { readonly maxRequests?: number; readonly maxBytes: number }): RequestSlots {
  const { maxRequests = Number.POSITIVE_INFINITY } = limits;
  let requests = 0;
  let bytesInFlight = 0;
  const waiting = new Set<Waiter>();

  const fits = (bytes: number): boolean =>
    requests === 0 || (requests < maxRequests && bytesInFlight + bytes <= limits.maxBytes);
  const take = (bytes: number): void => {
    requests += 1;
    bytesInFlight += bytes;
  };
  const admit = (): void => {
    for (const waiter of waiting) {
      // Aborted with the one that made room, its own callback still to come: it must not start any more.
      if (waiter.scope.aborted) continue;
      if (!fits(waiter.bytes)) return;
      waiting.delete(waiter);
      take(waiter.bytes);
      waiter.start(true);
    }
  };

  return {
    acquire(bytes, scope) {
      if (scope.aborted) return Promise.resolve(false);
      if (waiting.size === 0 && fits(bytes)) {
        take(bytes);
        return Promise.resolve(true);
      }
      return new Promise((resolve) => {
        const forget = scope.onAbort(() => {
          waiting.delete(waiter);
          resolve(false);
          admit();
        });
        const waiter: Waiter = {
          scope,
          bytes,
          start: (granted) => {
            forget();
            resolve(granted);
          },
        };
        waiting.add(waiter);
      });
    },
    release(bytes) {
      requests -= 1;
      bytesInFlight -= bytes;
      admit();
    },
  };
}
