/** What tests of brokers look at after a call: outcomes, and what keeps the process alive. */
import type { PublishResult } from "../../src/brokers/broker.ts";

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
