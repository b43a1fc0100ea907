/**
 * Failures that may be the destination's although reported for a message: a gateway whose service
 * is away, a queue not deployed yet. They count as the destination's, without an attempt, while
 * nothing of the topic goes. A message that fails so while others go is the cause itself, and would
 * rest its topic forever.
 */
import type { PublishResult } from "../../brokers/broker.ts";
import type { Clock } from "../../runtime/clock.ts";

/** Longest wait for a missing destination before messages use up attempts. */
const MISSING_FOR_MS = 300_000;
const REMEMBERED = 10_000;

export interface Absence {
  /** `ids` are those of the call's messages. */
  judge(topic: string, ids: readonly string[], results: readonly PublishResult[]): readonly PublishResult[];
}

export function createAbsence(clock: Pick<Clock, "monotonicMs">): Absence {
  const sentMs = new Map<string, number>();
  const missingSinceMs = new Map<string, number>();
  /** When a message last failed so. */
  const failedMs = new Map<string, number>();

  function meaning(topic: string, id: string, result: PublishResult): PublishResult {
    if (result.status === "sent") failedMs.delete(id);
    if (result.status !== "failed" || result.scope !== "message" || result.absent === undefined) return result;
    const nowMs = clock.monotonicMs();
    const before = failedMs.get(id);
    remember(failedMs, id, nowMs);
    if (before !== undefined && (sentMs.get(topic) ?? Number.NEGATIVE_INFINITY) >= before) return result;
    if (result.absent === "missing") {
      const sinceMs = missingSinceMs.get(topic) ?? nowMs;
      remember(missingSinceMs, topic, sinceMs);
      if (nowMs - sinceMs >= MISSING_FOR_MS) return result;
    }
    return { ...result, scope: "destination" };
  }

  return {
    judge(topic, ids, results) {
      if (results.some(({ status }) => status === "sent")) {
        missingSinceMs.delete(topic);
        remember(sentMs, topic, clock.monotonicMs());
      }
      return results.map((result, index) => meaning(topic, ids[index] ?? "", result));
    },
  };
}

function remember(map: Map<string, number>, key: string, ms: number): void {
  map.delete(key);
  map.set(key, ms);
  if (map.size <= REMEMBERED) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
