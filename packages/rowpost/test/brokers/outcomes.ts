/** What tests of brokers look at after a call: outcomes, and what keeps the process alive. */
import { expect } from "vitest";
import type { Broker, PublishResult } from "../../src/brokers/broker.ts";

/** How many messages came out how: by scope when they failed, else by status. */
export function counts(results: readonly PublishResult[]): Record<string, number> {
  return tally(results.map((result) => (result.status === "failed" ? result.scope : result.status)));
}

/** {@link counts} with the code of each failure behind its scope, as in `message UNKNOWN_TOPIC`. */
export function countsWithCode(results: readonly PublishResult[]): Record<string, number> {
  return tally(
    results.map((result) => (result.status === "failed" ? `${result.scope} ${result.code}` : result.status)),
  );
}

function tally(names: readonly string[]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const name of names) found[name] = (found[name] ?? 0) + 1;
  return found;
}

/**
 * Publishes until all of it is sent. Fails when that takes more than 2 s of time in which a broker that knows nothing of the outage sends the same:
 * a server that has just started, or a machine that stands still, is not the adapter's delay.
 */
export async function backAtFullSpeed(
  publish: (broker: Broker) => Promise<PublishResult[]>,
  survivor: Broker,
  create: () => Broker,
): Promise<void> {
  const isSent = ({ status }: PublishResult): boolean => status === "sent";
  const fresh = create();
  let lateMs = 0;
  try {
    for (;;) {
      const startedAt = performance.now();
      const [ours, theirs] = await Promise.all([publish(survivor), publish(fresh)]);
      if (ours.every(isSent)) return;
      if (theirs.every(isSent)) lateMs += performance.now() - startedAt;
      expect(lateMs, JSON.stringify(ours.find((result) => !isSent(result)))).toBeLessThan(2000);
    }
  } finally {
    await fresh.close();
  }
}

/** What keeps this process alive, by kind. */
export function resources(): Map<string, number> {
  const found = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) found.set(kind, (found.get(kind) ?? 0) + 1);
  return found;
}

/** Kinds of which there are more now; a reader's polls and immediates come and go. */
export function added(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): string[] {
  return [...after]
    .filter(([kind, count]) => kind !== "Immediate" && count > (before.get(kind) ?? 0))
    .map(([kind]) => kind);
}
