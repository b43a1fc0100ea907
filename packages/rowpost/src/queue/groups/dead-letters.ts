/** Lists, redelivers, edits and discards the dead letters and redeliveries of a group. */

import { checkQueueId } from "../../message/queue-errors.ts";
import { partitionOfId } from "../../message/queue-id.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import type { Transaction } from "../../transactions/executor.ts";
import { ONLY_GROUP_HEADER } from "../consuming/deliver.ts";
import { type TailedMessage, tailedMessage } from "../consuming/message.ts";
import type { QueueMessage } from "../producing/encode.ts";
import type { ConsumptionStore, GroupKey, StoredQueueMessage } from "../store.ts";
import { checkGroup, checkTopic } from "../topics/names.ts";
import { NoDeadLetterError } from "./errors.ts";
import { checkedHand, type GroupParts, HAND, type HandOptions, requireGroup } from "./groups.ts";
import type { Groups } from "./looking.ts";
import type { HandResult, StoredRedelivery } from "./requests.ts";

/** Selects redeliveries. */
export interface DeadLetterFilter {
  /** The topic. */
  readonly topic: string;
  /** The consumer group. */
  readonly group: string;
  /** `dead` (default): given up. `waiting`: comes again. */
  readonly state?: "dead" | "waiting" | "both" | undefined;
  /** Part of the last error, matched verbatim. */
  readonly error?: string | undefined;
}

/** Options of `queue.deadLetters`. */
export interface DeadLetterOptions extends DeadLetterFilter {
  /** Longest page. Default 100. */
  readonly limit?: number | undefined;
  /** `next` of the previous page. */
  readonly after?: string | undefined;
}

/** A dead letter or a redelivery of a group. */
export interface DeadLetter {
  /** Id of the message. */
  readonly id: string;
  /** Partition, from 0. */
  readonly partition: number;
  /** Given up, or waiting to come again. */
  readonly state: "dead" | "waiting";
  /** Attempts so far. */
  readonly attempt: number;
  /** Error of the last attempt. */
  readonly error: string | undefined;
  /** Undefined for a dead letter, and behind another message of its ordering key. */
  readonly nextAttemptAt: string | undefined;
  /** When it entered this state. */
  readonly since: string;
  /** Undefined when its row is gone. */
  readonly message: TailedMessage | undefined;
}

/** A page of {@link DeadLetter}s, ordered by partition and id. */
export interface DeadLetterPage {
  /** Ordered by partition and id. */
  readonly letters: readonly DeadLetter[];
  /** Value for `after`; undefined on the last page. */
  readonly next: string | undefined;
}

/** Options of `queue.redeliver` and `queue.discard`: ids, or everything that matches. */
export interface RedeliverOptions extends DeadLetterFilter, HandOptions {
  /** These messages, regardless of the filter. */
  readonly ids?: readonly string[] | undefined;
  /** Without ids: everything that matches the filter. */
  readonly all?: true | undefined;
}

/** Options of `queue.discard`. */
export interface DiscardOptions extends Omit<RedeliverOptions, "state"> {}

/** Result of a change by hand. */
export interface HandReport {
  /** Number of changed messages. */
  readonly changed: number;
  /** Ids that could not be changed, each with its state. */
  readonly conflicts: readonly { readonly id: string; readonly state: "waiting" | "dead" | "aside" | "absent" }[];
}

/** Options of `queue.editDeadLetter`. */
export interface EditOptions extends HandOptions {
  /** Id of the dead letter. */
  readonly id: string;
  /** Fields to change in the copy. */
  readonly change: Partial<
    Pick<QueueMessage, "body" | "headers" | "contentType" | "jsonText" | "key" | "type" | "orderingKey">
  >;
}

const FILTER: OptionKinds<DeadLetterFilter> = { topic: "any", group: "any", state: "any", error: "string" };
const { state: _state, ...FILTER_OF_DEAD } = FILTER;
/** The append checks the message itself. */
const CHANGE: OptionKinds<EditOptions["change"]> = {
  body: "any",
  headers: "any",
  contentType: "any",
  jsonText: "any",
  key: "any",
  type: "any",
  orderingKey: "any",
};

const PAGE = 500;

export interface DeadLetterParts extends GroupParts {
  /** Reads messages, for no group. */
  readonly messages: (topic: string) => Pick<ConsumptionStore, "readIds" | "close">;
  readonly ip: string | null;
  readonly transaction: <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>;
  /** Makes tables that an append may need, outside a transaction. */
  readonly prepare: (topic: string) => Promise<void>;
  readonly append: (
    messages: readonly QueueMessage[],
    tx: Transaction,
    own: Readonly<Record<string, string>>,
  ) => Promise<string[]>;
  /** Makes the consumers of this process look for due messages at once. */
  readonly wake: () => void;
}

export async function deadLetters(parts: DeadLetterParts, options: DeadLetterOptions): Promise<DeadLetterPage> {
  checkOptions("deadLetters", options, { ...FILTER, limit: "number", after: "any" });
  const key = keyOf(options);
  const { limit = 100 } = options;
  wholeNumber("deadLetters: limit", limit, 1);
  const after = options.after === undefined ? undefined : checkQueueId("after", options.after);
  await requireGroup(parts, key);
  const found: StoredRedelivery[] = [];
  let next: string | undefined;
  for await (const row of matching(parts.store, key, options, after)) {
    if (found.length >= limit) {
      next = found.at(-1)?.id;
      break;
    }
    found.push(row);
  }
  const reader = parts.messages(key.topic);
  try {
    const letters: DeadLetter[] = [];
    // One at a time, since a body may have 16 MB.
    for (const row of found) {
      const [message] = await reader.readIds([row.id]);
      letters.push(letterOf(row, message === undefined ? undefined : tailedMessage(key.topic, message)));
    }
    return { letters, next };
  } finally {
    await reader.close();
  }
}

export async function redeliver(parts: DeadLetterParts, options: RedeliverOptions): Promise<HandReport> {
  checkOptions("redeliver", options, { ...FILTER, ...HAND, ids: "array", all: "boolean" });
  keyOf(options);
  const { key, note } = checkedHand(options, parts.ip);
  checkChoice(options);
  await requireGroup(parts, key);
  const report = await change(parts.store, key, options, (partition, ids) =>
    parts.store.redeliver(key, partition, ids, note),
  );
  parts.wake();
  return report;
}

export async function discard(parts: DeadLetterParts, options: DiscardOptions): Promise<HandReport> {
  checkOptions("discard", options, { ...FILTER_OF_DEAD, ...HAND, ids: "array", all: "boolean" });
  const { key, note } = checkedHand(options, parts.ip);
  checkChoice(options);
  await requireGroup(parts, key);
  return await change(parts.store, key, { ...options, state: "dead" }, (partition, ids) =>
    parts.store.remove(key, partition, { ids, from: "dead", result: "discarded", note }),
  );
}

/** Both in one transaction. */
export async function editDeadLetter(parts: DeadLetterParts, options: EditOptions): Promise<string> {
  checkOptions("editDeadLetter", options, { ...HAND, id: "any", change: "object" });
  checkOptions("editDeadLetter: change", options.change, CHANGE);
  const { key, note } = checkedHand(options, parts.ip);
  const id = checkQueueId("id", options.id);
  await requireGroup(parts, key);
  const reader = parts.messages(key.topic);
  let row: StoredQueueMessage | undefined;
  try {
    [row] = await reader.readIds([id]);
  } finally {
    await reader.close();
  }
  if (row === undefined) throw new NoDeadLetterError(id, key.group, "absent");
  const old = tailedMessage(key.topic, row);
  const [theirs, own] = partedHeaders(old.headers);
  const copy = copyOf({ ...old, headers: theirs }, options);
  await parts.prepare(key.topic);
  const partition = partitionOfId(id);
  const [copyId = ""] = await parts.transaction(async (tx) => {
    const [result] = await parts.store.removeIn(tx, key, partition, {
      ids: [id],
      from: "dead",
      result: "discarded",
      note: { ...note, reason: `${note.reason} (edited as a copy)` },
    });
    if (result?.result !== "changed") throw new NoDeadLetterError(id, key.group, result?.result ?? "absent");
    return await parts.append([copy], tx, { ...own, [ONLY_GROUP_HEADER]: key.group });
  });
  parts.wake();
  return copyId;
}

/** Separates the producer's headers from rowpost's own, which nobody may set. */
function partedHeaders(headers: Readonly<Record<string, string>>): readonly [Headers, Headers] {
  const entries = Object.entries(headers);
  const isOwn = ([name]: readonly [string, string]): boolean => /^rowpost-/i.test(name);
  return [Object.fromEntries(entries.filter((each) => !isOwn(each))), Object.fromEntries(entries.filter(isOwn))];
}

type Headers = Readonly<Record<string, string>>;

function copyOf(old: TailedMessage, { topic, change: changed }: EditOptions): QueueMessage {
  const isText = typeof old.body === "string" && old.contentType !== "application/json";
  const base: QueueMessage = {
    topic,
    body: old.body,
    ...(isText || old.body instanceof Uint8Array ? { contentType: old.contentType } : {}),
    ...(old.key === undefined ? {} : { key: old.key }),
    ...(old.type === undefined ? {} : { type: old.type }),
    ...(old.orderingKey === undefined ? {} : { orderingKey: old.orderingKey }),
  };
  const { contentType: _contentType, ...untyped } = base;
  const headers = { ...old.headers, ...changed.headers };
  return { ...("body" in changed ? untyped : base), ...changed, headers };
}

function keyOf({ topic, group, state = "dead" }: DeadLetterFilter): GroupKey {
  if (!["dead", "waiting", "both"].includes(state)) {
    throw new ConfigurationError(`state is ${String(state)}; it must be "dead", "waiting" or "both"`);
  }
  return { topic: checkTopic(topic), group: checkGroup(group) };
}

/** Ordered by partition and id. */
async function* matching(
  store: Groups,
  key: GroupKey,
  { state = "dead", error }: Pick<DeadLetterFilter, "state" | "error">,
  after: string | undefined,
): AsyncGenerator<StoredRedelivery> {
  let place = after === undefined ? { partition: -1, id: "0" } : { partition: partitionOfId(after), id: after };
  for (;;) {
    const rows = await store.page(key, place, PAGE);
    for (const row of rows) {
      const isMeant = state === "both" ? row.state !== "aside" : row.state === state;
      if (isMeant && (error === undefined || (row.failReason ?? "").includes(error))) yield row;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    place = last;
  }
}

function checkChoice({ ids, all }: Pick<RedeliverOptions, "ids" | "all">): void {
  if ((ids === undefined) === (all !== true)) {
    throw new ConfigurationError("which messages? Give ids, or all: true for all that match the filter");
  }
  for (const id of ids ?? []) checkQueueId("id", id);
}

async function change(
  store: Groups,
  key: GroupKey,
  options: Pick<RedeliverOptions, "ids" | "state" | "error">,
  run: (partition: number, ids: readonly string[]) => Promise<HandResult[]>,
): Promise<HandReport> {
  const { ids } = options;
  const conflicts: { id: string; state: Exclude<HandResult["result"], "changed"> }[] = [];
  let changed = 0;
  const runBatch = async (partition: number, batch: readonly string[]): Promise<void> => {
    for (const { id, result } of await run(partition, batch)) {
      if (result === "changed") changed += 1;
      // A conflict is reported only for ids given by the caller; a match may change meanwhile.
      else if (ids !== undefined) conflicts.push({ id, state: result });
    }
  };
  const batches = new Map<number, string[]>();
  const take = async (partition: number, id: string): Promise<void> => {
    const batch = batches.get(partition) ?? [];
    batches.set(partition, batch);
    batch.push(id);
    if (batch.length >= PAGE) await runBatch(partition, batch.splice(0));
  };
  if (ids !== undefined) {
    for (const id of new Set(ids)) await take(partitionOfId(id), id);
  } else for await (const { partition, id } of matching(store, key, options, undefined)) await take(partition, id);
  for (const [partition, batch] of batches) if (batch.length > 0) await runBatch(partition, batch);
  return { changed, conflicts };
}

function letterOf(row: StoredRedelivery, message: TailedMessage | undefined): DeadLetter {
  const { id, partition, attempt, failReason, nextAttemptAt, changedAt } = row;
  return {
    id,
    partition,
    attempt,
    message,
    state: row.state === "dead" ? "dead" : "waiting",
    error: failReason ?? undefined,
    nextAttemptAt: row.state === "dead" ? undefined : (nextAttemptAt ?? undefined),
    since: changedAt,
  };
}
