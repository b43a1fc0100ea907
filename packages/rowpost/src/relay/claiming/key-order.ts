/**
 * Order per key (rule: key-order): which scanned messages overtake no earlier one of their key,
 * according to the unfinished rows that `keyQueues` reads from the table. Pure.
 *
 * Without it: m1 failed and waits for its backoff, m2 is due. After a restart nothing in memory
 * knows m1, and m2 goes first.
 */

import { byRowId, compareIds } from "../../runtime/compare-ids.ts";
import type { Follower } from "../parking/followers.ts";
import type { KeyQueueRow, ScannedMessage } from "../store.ts";

/**
 * Outside its key's order: a resend, or a slow retry while `failed` messages do not block (rule:
 * key-order).
 */
export type StandsOutside = (row: {
  readonly resend: boolean;
  readonly retryCount: number;
  readonly type: string;
}) => boolean;

export interface KeyOrderDecision {
  /** In id order within each key. */
  readonly ready: readonly ScannedMessage[];
  /** Behind a message that waits for its retry or delay, is suspended, or failed and blocks. */
  readonly behind: readonly Follower[];
  /** Behind a message that could go but was not scanned. */
  readonly unseen: readonly Follower[];
  /** Behind a message that is being sent or goes now to another topic. */
  readonly next: readonly ScannedMessage[];
}

/** Greatest scanned id of each ordering key. */
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
 * For each key, the leading unfinished rows that are due candidates. The run ends at a row that
 * waits, is being sent, is suspended, or failed and blocks. It also ends where the topic changes:
 * topics are published side by side, so the next topic's messages would go even if the earlier ones
 * fail.
 */
export function leadingRuns(
  candidates: readonly ScannedMessage[],
  queues: readonly KeyQueueRow[],
  standsOutside: StandsOutside,
): KeyOrderDecision {
  const byId = new Map(candidates.map((candidate) => [candidate.id, candidate]));
  const ready = new Map<string, ScannedMessage>();
  /** End of each run: the message that followers wait behind, or one that goes soon. */
  const ends = new Map<string, { readonly headId: string | undefined; readonly isDue: boolean }>();
  const topics = new Map<string, string>();
  for (const row of queues) {
    if (standsOutside(row) || ends.has(row.orderingKey)) continue;
    const candidate = byId.get(row.id);
    const goes = candidate !== undefined && row.state === "pending" && row.due;
    const topic = topics.get(row.orderingKey) ?? candidate?.topic;
    if (goes && candidate.topic === topic) {
      topics.set(row.orderingKey, topic);
      ready.set(row.id, candidate);
    } else {
      const headId = goes || row.state === "sending" ? undefined : row.id;
      ends.set(row.orderingKey, { headId, isDue: row.state === "pending" && row.due });
    }
  }
  for (const candidate of candidates) if (standsOutside(candidate)) ready.set(candidate.id, candidate);
  const behind: Follower[] = [];
  const unseen: Follower[] = [];
  const next: ScannedMessage[] = [];
  for (const row of candidates) {
    if (ready.has(row.id)) continue;
    const end = ends.get(row.orderingKey ?? "");
    if (end?.headId === undefined || end.headId === row.id) next.push(row);
    else (end.isDue ? unseen : behind).push({ row, headId: end.headId });
  }
  return { ready: [...ready.values()].sort(byRowId), behind, unseen, next };
}

/**
 * Splits the claimed part of a batch: messages that may go, and those behind an unclaimed one of
 * their key, which was changed after its scan by a user, parking or bringing forward.
 */
export function withoutGaps(
  batch: readonly Pick<ScannedMessage, "id" | "orderingKey">[],
  claimed: ReadonlySet<string>,
): { readonly go: ReadonlySet<string>; readonly behind: ReadonlySet<string> } {
  const broken = new Set<string>();
  const [go, behind] = [new Set<string>(), new Set<string>()];
  for (const { id, orderingKey } of batch) {
    if (!claimed.has(id)) {
      if (orderingKey !== null) broken.add(orderingKey);
    } else if (orderingKey !== null && broken.has(orderingKey)) behind.add(id);
    else go.add(id);
  }
  return { go, behind };
}
