/**
 * One partition that this member holds: how far it has read, and what is under way. Progress is the
 * lowest id that is not finished, so what is finished above it waits in the window.
 */
import { MOST_IN_A_RECORD, queueMonth } from "../../message/queue-id.ts";
import { createReader, idAfter } from "../reading/reader.ts";
import type {
  ConsumptionRecord,
  ConsumptionStore,
  DueRedelivery,
  Progress,
  Redelivery,
  Settlement,
  StoredQueueMessage,
} from "../store.ts";
import type { HandedOut } from "./message.ts";
import type { ConsumerSettings } from "./options.ts";

/** What came of a delivery. */
export type Outcome =
  | { readonly kind: "consumed"; readonly durationMs: number }
  | { readonly kind: "failed"; readonly durationMs: number; readonly error: string; readonly final: boolean }
  | { readonly kind: "delayed"; readonly dueInMs: number }
  /** An earlier one of its ordering key has failed and is not done. */
  | { readonly kind: "behind" }
  /** Not for this group. */
  | { readonly kind: "skipped"; readonly error: string };

/** A message under way. */
export interface Delivery extends HandedOut {
  readonly message: StoredQueueMessage;
  readonly attempt: number;
  /** The same, counted from where it was redelivered by hand. */
  readonly countedAttempt: number;
  /** Out of message_redelivery. */
  readonly again: boolean;
  started: boolean;
  /** Not to be started any more. */
  dropped: boolean;
  outcome: Outcome | undefined;
}

/** Of a message read for the first time; or again, after so many attempts. */
export function deliveryOf(message: StoredQueueMessage, due?: DueRedelivery): Delivery {
  const attempt = due?.attempt ?? 0;
  return {
    message,
    attempt: attempt + 1,
    countedAttempt: attempt - (due?.firstAttempt ?? 0) + 1,
    again: due !== undefined,
    started: false,
    dropped: false,
    outcome: undefined,
  };
}

/** What is settled together. */
export interface Finished {
  readonly settlement: Settlement;
  readonly deliveries: readonly Delivery[];
}

export interface Partition {
  readonly partition: number;
  /** In order of their ids; redeliveries are not among them. */
  readonly window: Delivery[];
  /** Redeliveries under way, by id. */
  readonly again: Map<string, Delivery>;
  /** Ordering keys whose messages wait behind a failed one. */
  readonly heldUp: Set<string>;
  readonly abort: AbortController;
  /** A settle is under way, or about to begin. */
  settling: Promise<void> | undefined;
  /** When redeliveries were last looked for. */
  lookedAgainMs: number;
  /** Up to `limit` messages that follow the last ones; `lastId` is the counter as read before. */
  read(lastId: string, limit: number): Promise<StoredQueueMessage[]>;
  /** Reads on from this id: what was read behind it was given back. */
  readFrom(id: string): void;
  /** The finished head of the window, and finished redeliveries; undefined: there is nothing. */
  finished(): Finished | undefined;
  /** Takes them out. */
  remove(finished: Finished): void;
  /** Settlement of these deliveries; the progress goes behind the last that is no redelivery. */
  settlementOf(deliveries: readonly Delivery[]): Settlement;
  /** Of redeliveries whose messages are not there any more: dead letters. */
  goneSettlement(gone: readonly DueRedelivery[]): Settlement;
}

export interface PartitionOptions {
  readonly progress: Progress;
  readonly store: Pick<ConsumptionStore, "read">;
  /** Months that have a table, in order. */
  readonly months: () => Promise<readonly number[]>;
  readonly settings: Pick<ConsumerSettings, "records" | "retryInMs" | "onFailed" | "transactional">;
}

/** Settled at once at most: what has gathered must not become one huge transaction. */
const MOST_SETTLED = 1_000;

export function createPartition({ progress, store, months, settings }: PartitionOptions): Partition {
  const { partition, epoch, round } = progress;
  const reader = createReader({ store, months, partition, fromId: progress.nextId });
  const window: Delivery[] = [];
  const again = new Map<string, Delivery>();
  let progressId = progress.nextId;
  // What a transaction of the user's has written with a settlement must not be written twice.
  const mayBeWritten = !settings.transactional;

  function settlementOf(deliveries: readonly Delivery[]): Settlement {
    const fresh = deliveries.filter((delivery) => !delivery.again);
    const last = fresh.at(-1);
    const redelivered = deliveries.filter((each) => each.again && (isDone(each) || each.outcome?.kind === "skipped"));
    const blocks = settings.onFailed === "block";
    return {
      ...{ partition, epoch, round, mayBeWritten, fromId: progressId },
      nextId: last === undefined ? undefined : idAfter(last.message.id),
      records: recordsOf(deliveries, settings.records),
      redeliveries: deliveries.flatMap((delivery) => redeliveryOf(delivery, settings.retryInMs, blocks) ?? []),
      redelivered: redelivered.map(({ message }) => message.id),
      released: blocks ? releasedKeys(deliveries) : [],
    };
  }

  return {
    partition,
    window,
    again,
    heldUp: new Set(),
    abort: new AbortController(),
    settling: undefined,
    lookedAgainMs: Number.NEGATIVE_INFINITY,
    read: (lastId, limit) => reader.read(lastId, limit),
    readFrom: (id) => reader.readFrom(id),
    settlementOf,
    goneSettlement: (gone) => ({
      ...{ partition, epoch, round, mayBeWritten, fromId: progressId },
      ...{ nextId: undefined, records: [], redelivered: [] },
      redeliveries: gone.map(({ id, attempt, orderingKey }) => ({
        ...{ id, orderingKey, attempt: attempt + 1, state: "dead", dueInMs: 0, again: true },
        failReason: "MESSAGE_GONE: its row is not there any more; its month was dropped, or somebody has deleted it",
      })),
      released: [...new Set(gone.flatMap(({ orderingKey }) => orderingKey ?? []))],
    }),
    finished() {
      const open = window.findIndex(({ outcome }) => outcome === undefined);
      const head = window.slice(0, Math.min(open === -1 ? window.length : open, MOST_SETTLED));
      const deliveries = [...head, ...[...again.values()].filter(({ outcome }) => outcome !== undefined)];
      return deliveries.length === 0 ? undefined : { deliveries, settlement: settlementOf(deliveries) };
    },
    remove({ deliveries, settlement }) {
      progressId = settlement.nextId ?? progressId;
      const fresh = deliveries.filter((delivery) => !delivery.again);
      window.splice(0, fresh.length);
      for (const delivery of deliveries) if (delivery.again) again.delete(delivery.message.id);
    },
  };
}

function isDone({ outcome }: Delivery): boolean {
  return outcome?.kind === "consumed";
}

function recordsOf(deliveries: readonly Delivery[], mode: ConsumerSettings["records"]): ConsumptionRecord[] {
  const records: ConsumptionRecord[] = [];
  for (const together of mode === "batch" ? stretches(deliveries) : []) {
    const well = together.filter(isDone);
    const [first] = well;
    if (first === undefined) continue;
    const durationMs = Math.max(...well.map(({ outcome }) => (outcome?.kind === "consumed" ? outcome.durationMs : 0)));
    const last = well.at(-1)?.message.id ?? null;
    records.push({ ...recordOf(first, "consumed", durationMs, null), key: null, lastId: last, messages: well.length });
  }
  for (const delivery of deliveries) {
    const { outcome } = delivery;
    if (
      outcome === undefined ||
      outcome.kind === "delayed" ||
      outcome.kind === "behind" ||
      (mode === "batch" && isDone(delivery) && !delivery.again)
    )
      continue;
    if (outcome.kind === "consumed") records.push(recordOf(delivery, "consumed", outcome.durationMs, null));
    else if (outcome.kind === "skipped") records.push(recordOf(delivery, "skipped", 0, outcome.error));
    else records.push(recordOf(delivery, outcome.final ? "dead" : "failed", outcome.durationMs, outcome.error));
  }
  return records;
}

/**
 * Those that are no redelivery, in order; each stretch in one month, so that its record goes with
 * the messages when their month is dropped, and short enough to be looked for.
 */
function stretches(deliveries: readonly Delivery[]): readonly Delivery[][] {
  const all: Delivery[][] = [];
  let month = 0;
  for (const delivery of deliveries) {
    if (delivery.again) continue;
    const its = queueMonth(delivery.message.id);
    const last = all.at(-1);
    if (last !== undefined && its === month && last.length < MOST_IN_A_RECORD) last.push(delivery);
    else all.push([delivery]);
    month = its;
  }
  return all;
}

function recordOf(
  { message, attempt }: Delivery,
  result: ConsumptionRecord["result"],
  durationMs: number,
  error: string | null,
): ConsumptionRecord {
  return {
    id: message.id,
    lastId: null,
    messages: 1,
    key: message.key,
    attempt,
    result,
    durationMs: Math.round(durationMs),
    error,
  };
}

function redeliveryOf(
  { message, attempt, countedAttempt, again, outcome }: Delivery,
  retryInMs: (attempt: number) => number,
  blocks: boolean,
): Redelivery | undefined {
  const { id, orderingKey } = message;
  if (outcome?.kind === "delayed") {
    return { id, attempt: 0, state: "waiting", dueInMs: outcome.dueInMs, failReason: null };
  }
  if (outcome?.kind === "behind") {
    return { id, attempt: 0, state: "waiting", dueInMs: null, failReason: null, orderingKey };
  }
  if (outcome?.kind !== "failed") return undefined;
  const { final, error } = outcome;
  return {
    ...{ id, attempt, again, failReason: error, orderingKey: blocks ? orderingKey : null },
    state: final ? "dead" : "waiting",
    dueInMs: final ? 0 : retryInMs(countedAttempt),
  };
}

/**
 * Keys whose first waiting message may be due: something before it is done, or it has just come to
 * wait and there may be nothing before it any more.
 */
function releasedKeys(deliveries: readonly Delivery[]): string[] {
  const keys = deliveries
    .filter(({ again, outcome }) => outcome?.kind === "behind" || (again && !holdsUp(outcome)))
    .flatMap(({ message }) => message.orderingKey ?? []);
  return [...new Set(keys)];
}

/** Later ones of its key have to wait. */
export function holdsUp(outcome: Outcome | undefined): boolean {
  return outcome?.kind === "behind" || (outcome?.kind === "failed" && !outcome.final);
}
