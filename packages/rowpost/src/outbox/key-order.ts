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
  /** Those of `next` that stand behind a due message which this scan did not bring. Where they fill the scans, nothing else brings it. */
  readonly unseen: readonly ScannedMessage[];
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
  const stopped = new Map<string, "blocked" | "next" | "unseen">();
  const topics = new Map<string, string>();
  for (const row of queues) {
    if (standsOutside(row) || stopped.has(row.orderingKey)) continue;
    const candidate = byId.get(row.id);
    const goes = candidate !== undefined && row.state === "pending" && row.due;
    const topic = topics.get(row.orderingKey) ?? candidate?.topic;
    if (goes && candidate.topic === topic) {
      topics.set(row.orderingKey, topic);
      ready.set(row.id, candidate);
    } else if (row.state === "pending" && row.due) {
      stopped.set(row.orderingKey, candidate === undefined ? "unseen" : "next");
    } else stopped.set(row.orderingKey, row.state === "sending" ? "next" : "blocked");
  }
  for (const candidate of candidates) if (standsOutside(candidate)) ready.set(candidate.id, candidate);
  const inOrder = [...ready.values()].sort((left, right) => compareIds(left.id, right.id));
  const waiting = candidates.filter((candidate) => !ready.has(candidate.id));
  const why = ({ orderingKey }: ScannedMessage) => stopped.get(orderingKey ?? "");
  return {
    ready: inOrder,
    blocked: waiting.filter((message) => why(message) === "blocked"),
    next: waiting.filter((message) => why(message) !== "blocked"),
    unseen: waiting.filter((message) => why(message) === "unseen"),
  };
}

/**
 * Of a batch in id order of which only these could be claimed: what may go, and what was claimed behind a message of its key that was not. Somebody,
 * or a statement of ours beside the rounds (parking, bringing forward), changed that one after its scan; the later one would overtake it.
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
