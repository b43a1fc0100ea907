/**
 * A partition of this member. Progress is the lowest unfinished id, so messages finished above it
 * wait in the window.
 */
import { BEGUN_MARK } from "../../message/member-silent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { createReader, idAfter, type Reader } from "../reading/reader.ts";
import type { ConsumptionStore, DueRedelivery, Progress, Settlement } from "../store.ts";
import { type Delivery, hasRecord, isDone } from "./delivery.ts";
import { type ConsumerSettings, MOST_BATCH } from "./options.ts";
import { recordOf, recordsOf, redeliveryOf, releasedKeys } from "./written.ts";

const SILENT = `${BEGUN_MARK}, and was not heard of since: it died, or its event loop stood still`;

export interface Finished {
  readonly settlement: Settlement;
  readonly deliveries: readonly Delivery[];
  /** The progress stays before an earlier unfinished message. */
  readonly isAhead?: boolean;
}

export interface Partition {
  readonly partition: number;
  readonly round: number;
  /**
   * How many more messages go one by one with a mark, because a member may have fallen silent
   * during them; and since when.
   */
  readonly careful: { fresh: number; again: number; sinceMs: number };
  /**
   * How many of the next messages, up to this id, may already be recorded. Undefined: up to the
   * next counter read.
   */
  unsure: { readonly messages: number; readonly toId: string | undefined };
  /** Size of the bodies not handled yet. */
  bytes: number;
  /** Finished without a record. */
  unrecorded: number;
  /** In id order, without redeliveries. */
  readonly window: Delivery[];
  /** Redeliveries under way, by id. */
  readonly again: Map<string, Delivery>;
  readonly heldUp: Set<string>;
  readonly abort: AbortController;
  /** Under way, or about to begin. */
  settling: Promise<void> | undefined;
  /** When the first known redelivery is due. */
  dueAtMs: number;
  /** See `Reader`. */
  read: Reader["read"];
  readFrom(id: string): void;
  /** The finished head of the window and finished redeliveries. */
  finished(): Finished | undefined;
  /** Finished behind an open head and not recorded. */
  finishedAhead(): Finished | undefined;
  letGo(delivery: Delivery): void;
  /** Mark that this attempt begins. */
  markOf(delivery: Delivery): Settlement;
  /** Deliveries ahead of the progress stay, as recorded. */
  remove(finished: Finished): void;
  /** The progress moves past the last one that is no redelivery. */
  settlementOf(deliveries: readonly Delivery[]): Settlement;
  /** Makes dead letters of redeliveries whose messages are gone. */
  goneSettlement(gone: readonly DueRedelivery[]): Settlement;
}

export interface PartitionOptions {
  readonly progress: Progress;
  readonly store: Pick<ConsumptionStore, "read">;
  /** In order. */
  readonly months: () => Promise<readonly number[]>;
  readonly settings: Pick<
    ConsumerSettings,
    "records" | "retryInMs" | "onFailed" | "transactional" | "batchSize" | "clock"
  >;
  /** The last owner fell silent. */
  readonly isSilent: boolean;
}

/** Keeps transactions small. */
const MOST_SETTLED = 1_000;

/** Most messages handled past an unfinished one. */
export const MOST_AHEAD = 10_000;
export const MOST_RECORDED_AHEAD: number = MOST_AHEAD + MOST_BATCH;

export function createPartition({ progress, store, months, settings, isSilent }: PartitionOptions): Partition {
  const { partition, epoch, round } = progress;
  const reader = createReader({ store, months, partition, fromId: progress.nextId });
  const window: Delivery[] = [];
  const again = new Map<string, Delivery>();
  // Quick handlers may have finished more than was written.
  const careful = isSilent ? 2 * settings.batchSize : 0;
  let progressId = progress.nextId;
  // A settlement in the user's transaction must not be written twice.
  const mayBeWritten = !settings.transactional;

  const blocks = settings.onFailed === "block";

  function settlementOf(deliveries: readonly Delivery[], records = settings.records): Settlement {
    const fresh = deliveries.filter((delivery) => !delivery.again);
    const last = fresh.at(-1);
    const redelivered = deliveries.filter((each) => each.again && (isDone(each) || each.outcome?.kind === "skipped"));
    return {
      partition,
      epoch,
      round,
      mayBeWritten,
      fromId: progressId,
      nextId: last === undefined ? undefined : idAfter(last.message.id),
      records: recordsOf(deliveries, records),
      redeliveries: deliveries.flatMap((delivery) => redeliveryOf(delivery, settings.retryInMs, blocks) ?? []),
      redelivered: redelivered.map(({ message }) => message.id),
      released: blocks ? releasedKeys(deliveries) : [],
    };
  }

  function letGo({ message }: Delivery): void {
    partitionState.bytes -= message.body.length;
    (message as { body: string }).body = "";
  }

  const partitionState: Partition = {
    partition,
    round,
    window,
    again,
    careful: { fresh: careful, again: careful, sinceMs: settings.clock.monotonicMs() },
    // The first owner ever finds no records.
    unsure: { messages: epoch === "1" ? 0 : MOST_RECORDED_AHEAD, toId: undefined },
    bytes: 0,
    unrecorded: 0,
    letGo,
    heldUp: new Set(),
    abort: new AbortController(),
    settling: undefined,
    dueAtMs: Number.NEGATIVE_INFINITY,
    read: (lastId, limit, bodyLimit) => reader.read(lastId, limit, bodyLimit),
    readFrom: (id) => reader.readFrom(id),
    settlementOf: (deliveries) => settlementOf(deliveries),
    goneSettlement: (gone) => ({
      partition,
      epoch,
      round,
      mayBeWritten,
      fromId: progressId,
      nextId: undefined,
      records: [],
      redelivered: [],
      redeliveries: gone.map(({ id, attempt, orderingKey }) => ({
        id,
        orderingKey,
        attempt: attempt + 1,
        state: "dead",
        dueInMs: 0,
        again: true,
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
    finishedAhead() {
      const deliveries = window.filter(isUnrecorded).slice(0, MOST_SETTLED);
      if (deliveries.length === 0) return undefined;
      const settlement = { ...settlementOf(deliveries, "each"), nextId: undefined };
      return { deliveries, settlement, isAhead: true };
    },
    markOf(delivery) {
      const { attempt, again: isAgain } = delivery;
      const { id, orderingKey } = delivery.message;
      const mark = { id, attempt, state: "waiting", dueInMs: 0, failReason: SILENT, again: true } as const;
      return {
        partition,
        epoch,
        round,
        mayBeWritten: true,
        fromId: progressId,
        nextId: undefined,
        redelivered: [],
        records: [recordOf(delivery, "failed", 0, SILENT)],
        redeliveries: isAgain ? [{ ...mark, orderingKey: blocks ? orderingKey : null }] : [],
      };
    },
    remove({ deliveries, settlement, isAhead }) {
      for (const { state, dueInMs } of settlement.redeliveries)
        if (state === "waiting" && dueInMs !== null) dueIn(partitionState, dueInMs, settings.clock);
      partitionState.unrecorded -= deliveries.filter((each) => isUnrecorded(each) && !each.dropped).length;
      if (isAhead === true) {
        for (const delivery of deliveries) delivery.recorded = true;
        return;
      }
      progressId = settlement.nextId ?? progressId;
      const fresh = deliveries.filter((delivery) => !delivery.again);
      window.splice(0, fresh.length);
      for (const delivery of deliveries) {
        letGo(delivery);
        if (delivery.again) again.delete(delivery.message.id);
      }
    },
  };
  return partitionState;
}

/** Recorded with the progress, or earlier behind a slow head. */
export function isUnrecorded({ again, outcome, recorded }: Delivery): boolean {
  return !again && outcome !== undefined && hasRecord(outcome) && !recorded;
}

export function dueIn(partition: Partition, ms: number, { monotonicMs }: Pick<Clock, "monotonicMs">): void {
  // Both clocks count whole milliseconds.
  partition.dueAtMs = Math.min(partition.dueAtMs, monotonicMs() + ms + 1);
}
