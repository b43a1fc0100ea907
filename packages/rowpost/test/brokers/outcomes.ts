/** What tests of brokers look at after a call: outcomes, and what keeps the process alive. */
import { setTimeout as delay } from "node:timers/promises";
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

/** Of calls in which a new broker sends everything and the one that saw the outage does not. */
const MOST_TRIES = 5;
/** Between two tries; a relay's probes are no closer together. */
const PAUSE_MS = 500;

/**
 * Publishes until a whole batch is sent in one call, and no message is blamed for the outage. What
 * counts are the tries after a broker that knows nothing of the outage sent the same: a server that
 * has just started, or a machine that stands still, is not the adapter's delay.
 */
export async function sendsAllAgain(
  publish: (broker: Broker) => Promise<PublishResult[]>,
  survivor: Broker,
  create: () => Broker,
): Promise<void> {
  const isSent = ({ status }: PublishResult): boolean => status === "sent";
  const fresh = create();
  let tries = 0;
  try {
    for (;;) {
      const [ours, theirs] = await Promise.all([publish(survivor), publish(fresh)]);
      if (ours.every(isSent)) return;
      expect(ours).not.toContainEqual(expect.objectContaining({ scope: "message" }));
      if (theirs.every(isSent)) tries += 1;
      expect(tries, JSON.stringify(ours.find((result) => !isSent(result)))).toBeLessThan(MOST_TRIES);
      await delay(PAUSE_MS);
    }
  } finally {
    await fresh.close();
  }
}

/** Ends a wait only: what a call may not wait for takes a minute, or never comes. */
const GUARD_MS = 20_000;

/** The outcome of what has to end by itself, and not because the server or a timeout ends it. */
export async function endsByItself<T>(what: string, run: Promise<T>): Promise<T> {
  let guard: NodeJS.Timeout | undefined;
  const waits = new Promise<never>((_resolve, reject) => {
    guard = setTimeout(() => reject(new Error(`${what} waits for what it should not wait for`)), GUARD_MS);
  });
  try {
    return await Promise.race([run, waits]);
  } finally {
    clearTimeout(guard);
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
