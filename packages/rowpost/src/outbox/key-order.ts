/**
 * Order per key (rule R1): which of the scanned messages may be sent now without overtaking an earlier one of their key. The truth is the
 * table: `keyQueues` reads the unfinished rows of the batch's keys, and this decides. Pure.
 *
 * Without it: m1 of a key failed and waits for its backoff, m2 is due at once; after a restart nothing in memory remembers m1, and m2 is
 * published first.
 */

import type { KeyQueueRow, ScannedMessage } from "./relay-store.ts";
import { compareIds } from "./row-id.ts";

/** Stands outside its key's order: a resend of what was sent before, or a slow retry while `failed` messages do not block (DESIGN 13 R1). */
export type StandsOutside = (row: {
  readonly resend: boolean;
  readonly retryCount: number;
  readonly type: string;
}) => boolean;

/** What may go now, and what waits behind an earlier message of its key. */
export interface KeyOrderDecision {
  /** In id order within each key. */
  readonly ready: readonly ScannedMessage[];
  /** Behind a message that cannot go for some time: it waits for its retry or delay, is suspended, or failed and blocks. */
  readonly blocked: readonly ScannedMessage[];
  /** Behind a message that is being sent, or that this scan did not bring: they go soon. */
  readonly next: readonly ScannedMessage[];
}

/** Greatest scanned id of each ordering key: how far `keyQueues` has to look. */
export function keyRanges(
  candidates: readonly ScannedMessage[],
): { readonly orderingKey: string; readonly upToId: string }[] {
  const ranges = new Map<string, string>();
  for (const { orderingKey, id } of candidates) {
    if (orderingKey === null) continue;
    const known = ranges.get(orderingKey);
    if (known === undefined || compareIds(id, known) > 0) ranges.set(orderingKey, id);
  }
  return [...ranges].map(([orderingKey, upToId]) => ({ orderingKey, upToId }));
}

/**
 * For each key the leading run of its unfinished rows that is waiting, due and among the candidates. The run ends at the first row that is
 * not: one that waits for its backoff or its delay, is being sent, is suspended, or failed and blocks. It also ends where the topic changes:
 * topics are published side by side, so the next topic's messages would go although the one before them fails.
 */
export function leadingRuns(
  candidates: readonly ScannedMessage[],
  queues: readonly KeyQueueRow[],
  standsOutside: StandsOutside,
): KeyOrderDecision {
  const byId = new Map(candidates.map((candidate) => [candidate.id, candidate]));
  const ready = new Map<string, ScannedMessage>();
  const stopped = new Map<string, "blocked" | "next">();
  const topics = new Map<string, string>();
  for (const row of queues) {
    if (standsOutside(row) || stopped.has(row.orderingKey)) continue;
    const candidate = byId.get(row.id);
    const goes = candidate !== undefined && row.state === "pending" && row.due;
    const topic = topics.get(row.orderingKey) ?? candidate?.topic;
    if (goes && candidate.topic === topic) {
      topics.set(row.orderingKey, topic);
      ready.set(row.id, candidate);
    } else
      stopped.set(
        row.orderingKey,
        row.state === "sending" || (row.state === "pending" && row.due) ? "next" : "blocked",
      );
  }
  for (const candidate of candidates) if (standsOutside(candidate)) ready.set(candidate.id, candidate);
  const inOrder = [...ready.values()].sort((left, right) => compareIds(left.id, right.id));
  const waiting = candidates.filter((candidate) => !ready.has(candidate.id));
  const isBlocked = ({ orderingKey }: ScannedMessage): boolean => stopped.get(orderingKey ?? "") === "blocked";
  return { ready: inOrder, blocked: waiting.filter(isBlocked), next: waiting.filter((message) => !isBlocked(message)) };
}
