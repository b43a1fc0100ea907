/** Log lines about long-running handlers, which nothing else would show. */
import type { Delivery, Outcome } from "./delivery.ts";
import type { ConsumerSettings } from "./options.ts";
import type { Partition } from "./partition.ts";

const MOST_NAMED = 5;

type Named = Pick<Delivery["message"], "id" | "key" | "partition">;

function allOf(held: Iterable<Partition>): readonly Delivery[] {
  return [...held].flatMap(({ window, again }) => [...window, ...again.values()]);
}

function about({ message: { id, key, partition } }: Delivery): Named {
  return { id, key, partition };
}

export function namesOf(held: Iterable<Partition>): readonly Named[] {
  const running = allOf(held).filter(({ startedMs, outcome }) => startedMs !== undefined && outcome === undefined);
  return running.slice(0, MOST_NAMED).map(about);
}

/** `blockedMs`: how long the event loop was blocked. */
export function tellLong(
  { clock, leaseMs, logger, topic, group }: ConsumerSettings,
  held: Iterable<Partition>,
  blockedMs: number,
): void {
  const nowMs = clock.monotonicMs();
  const under = allOf(held);
  if (blockedMs > leaseMs / 2) {
    const suspects = under.filter(({ startedMs, outcome }) => startedMs !== undefined && lasted(outcome, blockedMs));
    logger.warn("the event loop stood still: leases could not be renewed, and others may take the partitions", {
      topic,
      group,
      blockedMs: Math.round(blockedMs),
      handled: suspects.slice(0, MOST_NAMED).map(about),
    });
  }
  for (const delivery of under) {
    const { outcome, startedMs, warnAtMs } = delivery;
    if (outcome !== undefined || startedMs === undefined || nowMs < warnAtMs) continue;
    const runningMs = Math.round(nowMs - startedMs);
    delivery.warnAtMs = nowMs + runningMs;
    logger.warn("a message is being handled for long; its place is taken and its key waits", {
      topic,
      group,
      ...about(delivery),
      runningMs,
    });
  }
}

/** Still runs, or took long enough to be a suspect. */
function lasted(outcome: Outcome | undefined, ms: number): boolean {
  if (outcome === undefined) return true;
  return (outcome.kind === "consumed" || outcome.kind === "failed") && outcome.durationMs >= ms / 2;
}
