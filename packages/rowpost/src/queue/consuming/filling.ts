/** Takes in new messages and due redeliveries. */
import { MEMBER_SILENT } from "../../message/member-silent.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import type { ConsumptionStore, StoredQueueMessage } from "../store.ts";
import { failed } from "./deliver.ts";
import { type Delivery, deliveryOf, type Outcome, type Tried } from "./delivery.ts";
import type { ConsumerSettings } from "./options.ts";
import { isUnrecorded, MOST_AHEAD, MOST_RECORDED_AHEAD, type Partition } from "./partition.ts";
import { isHeldUp, type Work } from "./work.ts";

const MOST_REDELIVERIES = 100;
/** Body sizes are still unknown. */
const FIRST_READ = 32;
/**
 * Messages go one by one for this long, but at least as many as the member's concurrency, and at
 * most a whole window.
 */
const CAREFUL_MS = 5_000;
/** Characters of bodies held before they are handled. */
const MOST_BYTES = 32 * 1_048_576;
/** Each begin may have killed a process. */
const MOST_SILENT = 8;

export interface Filling {
  hasRoom(partition: Partition): boolean;
  /** Returns true when something was taken in. */
  fill(partition: Partition, lastId: string): Promise<boolean>;
  fillAgain(partition: Partition): Promise<boolean>;
}

export interface FillingOptions {
  readonly settings: ConsumerSettings;
  readonly store: ConsumptionStore;
  readonly work: Work;
  readonly stopping: AbortSignal;
  readonly held: ReadonlyMap<number, Partition>;
  /** Returns false when this member no longer holds the partition. */
  readonly mark: (partition: Partition, delivery: Delivery) => Promise<boolean>;
}

export function createFilling({ settings, store, work, stopping, held, mark }: FillingOptions): Filling {
  const { clock, logger, topic, group, batchSize, types } = settings;
  let averageBytes: number | undefined;
  /** The last message begun carefully. */
  let alone: { readonly partition: Partition; readonly delivery: Delivery } | undefined;

  /** One at a time over all partitions: a message that kills the process must not mark others. */
  function mayBeginCarefully({ window, again }: Partition): boolean {
    if (window.length + again.size > 0) return false;
    const isOver = alone?.delivery.outcome !== undefined || alone?.delivery.dropped === true;
    return alone === undefined || isOver || alone.partition.abort.signal.aborted;
  }

  function bytes(): number {
    let sum = 0;
    for (const partition of held.values()) sum += partition.bytes;
    return sum;
  }

  /** Keys left blocked by an earlier owner or a person. */
  async function learnHeldUp(partition: Partition, deliveries: readonly Delivery[]): Promise<void> {
    if (settings.onFailed !== "block") return;
    const keys = new Set(deliveries.flatMap(({ message }) => message.orderingKey ?? []));
    const unknown = [...keys].filter((key) => !partition.heldUp.has(key));
    if (unknown.length === 0) return;
    for (const key of await store.heldUp(partition.partition, unknown)) partition.heldUp.add(key);
  }

  /** A power of two: the limit is part of the statement's text. */
  function rowsFor(room: number): number {
    if (averageBytes === undefined) return Math.min(batchSize, FIRST_READ);
    const rows = Math.floor(room / Math.max(1, averageBytes));
    return rows >= batchSize ? batchSize : 2 ** Math.floor(Math.log2(Math.max(1, rows)));
  }

  async function readNext(partition: Partition, lastId: string, most: number): Promise<StoredQueueMessage[]> {
    const room = MOST_BYTES - bytes();
    // Each partition may hold one message of any size.
    if (room <= 0 && partition.bytes > 0) return [];
    const rows = Math.min(most, rowsFor(Math.max(0, room)));
    const messages = await partition.read(lastId, rows, Math.floor(Math.max(0, room) / rows));
    const [first] = messages;
    if (first === undefined) return [];
    const sum = messages.reduce((total, { body, leftOutBytes = body.length }) => total + leftOutBytes, 0);
    averageBytes = Math.max(sum / messages.length, (averageBytes ?? 0) * 0.9);
    if (first.leftOutBytes === undefined) return messages;
    if (first.leftOutBytes <= room || partition.bytes === 0) {
      const [whole] = await store.readIds([first.id]);
      if (whole !== undefined) return [whole];
    }
    partition.readFrom(first.id);
    return [];
  }

  /** Messages that an earlier owner finished or began beyond the progress. */
  async function triedBefore(partition: Partition, messages: readonly StoredQueueMessage[]): Promise<Delivery[]> {
    const before = new Map<string, Tried & { readonly isDone: boolean }>();
    const ids = messages.map(({ id }) => id);
    if (mayBeRecorded(partition, ids) || partition.careful.fresh > 0) {
      for (const { id, attempt, isSilent } of await store.recorded(partition.round, ids)) {
        const known = before.get(id);
        const isDone = known?.isDone === true || !isSilent;
        before.set(id, { attempt: Math.max(attempt, known?.attempt ?? 0), firstAttempt: 0, isDone });
      }
    }
    return messages.map((message) => {
      const tried = before.get(message.id);
      const delivery = deliveryOf(message, tried, false);
      delivery.decided = tried?.isDone === true ? { kind: "known" } : passedOver(message);
      return delivery;
    });
  }

  function passedOver({ type }: StoredQueueMessage): Outcome | undefined {
    if (types === undefined || (type !== null && types.has(type))) return undefined;
    return { kind: "skipped", error: `not of the group's types: ${type ?? "no type"}` };
  }

  /** Members that fell silent during it since its last redelivery by hand. */
  async function silentOver({ round }: Partition, { message, attempt, countedAttempt }: Delivery): Promise<number> {
    const all = await store.recorded(round, [message.id]);
    return all.filter((each) => each.isSilent && each.attempt > attempt - countedAttempt).length;
  }

  /**
   * Returns true when the message may be handled, alone and with a mark of its begin. After too
   * many silent members it is a dead letter.
   */
  async function beginCarefully(partition: Partition, delivery: Delivery): Promise<boolean> {
    const isToBeCalled = delivery.message.dueInMs <= 0 || delivery.again;
    if (delivery.decided !== undefined || !isToBeCalled || isHeldUp(partition, delivery)) return true;
    const silent = await silentOver(partition, delivery);
    if (silent < Math.min(settings.maxAttempts, MOST_SILENT)) {
      alone = { partition, delivery };
      return await mark(partition, delivery);
    }
    const reason = `${MEMBER_SILENT}: its member fell silent ${silent} times while it handled this message: it died, or its event loop stood still`;
    delivery.decided = failed(reason, { attempt: 1, maxAttempts: 1, durationMs: 0 });
    logger.error("a message is a dead letter, because its members fell silent over it", {
      topic,
      group,
      id: delivery.message.id,
      key: delivery.message.key,
      attempts: silent,
    });
    return true;
  }

  function takeIn(partition: Partition, deliveries: readonly Delivery[]): void {
    for (const delivery of deliveries) {
      partition.bytes += delivery.message.body.length;
      if (delivery.again) partition.again.set(delivery.message.id, delivery);
      else partition.window.push(delivery);
    }
    work.begin(partition, deliveries);
  }

  async function takeDue(partition: Partition, dueAtMs: number): Promise<boolean> {
    const { again, careful } = partition;
    const isCareful = careful.again > 0;
    // A message settled meanwhile is still in the result.
    const underWay = new Set(again.keys());
    const most = isCareful ? 1 : Math.min(MOST_REDELIVERIES, rowsFor(Math.max(0, MOST_BYTES - bytes())));
    const due = await store.due(partition.partition, most);
    if (isCareful && due.length === 0) {
      careful.again = 0;
      // Nothing else would wake the round for new messages.
      return true;
    }
    if (due.length === most) partition.dueAtMs = dueAtMs;
    const byId = new Map(due.filter(({ id }) => !underWay.has(id)).map((each) => [each.id, each]));
    if (byId.size === 0) return false;
    const messages = await store.readIds([...byId.keys()]);
    if (stopping.aborted) return false;
    const deliveries = messages.map((message) => deliveryOf(message, byId.get(message.id)));
    for (const delivery of deliveries) delivery.decided = passedOver(delivery.message);
    for (const { message } of deliveries) byId.delete(message.id);
    if (byId.size > 0) {
      const gone = [...byId.values()];
      const ids = gone.map(({ id }) => id);
      logger.warn("messages to be redelivered are gone", { topic, group, ids });
      await store.settle(settings.owner, partition.goneSettlement(gone), {
        ip: null,
        port: null,
        instance: settings.owner,
      });
    }
    const [first] = deliveries;
    if (isCareful && first !== undefined) {
      if (!(await beginCarefully(partition, first))) return false;
      careful.again -= 1;
      careful.sinceMs = clock.monotonicMs();
    }
    takeIn(partition, deliveries);
    return deliveries.length > 0;
  }

  function mayFill(partition: Partition): boolean {
    const { careful, window } = partition;
    // A redelivery may be the cause, and new messages would never end.
    if (careful.again > 0) return false;
    return careful.fresh > 0 ? mayBeginCarefully(partition) : hasRoom(window, batchSize);
  }

  return {
    hasRoom: mayFill,

    async fill(partition, lastId) {
      const { careful, unsure } = partition;
      const isCareful = careful.fresh > 0;
      if (unsure.toId === undefined) partition.unsure = { ...unsure, toId: lastId };
      if (!mayFill(partition)) return false;
      const messages = await readNext(partition, endBefore(lastId, settings.untilId), isCareful ? 1 : batchSize);
      const [first] = messages;
      if (first === undefined) return false;
      try {
        const deliveries = await triedBefore(partition, messages);
        await learnHeldUp(partition, deliveries);
        await settings.reach("read");
        const silent = deliveries.findIndex(({ attempt, decided }) => attempt > 1 && decided === undefined);
        if (silent !== -1 && !isCareful) {
          // The silent member signed off later, or the message lay beyond the careful ones.
          careful.fresh = 2 * batchSize;
          careful.sinceMs = clock.monotonicMs();
          partition.readFrom((deliveries[silent] as Delivery).message.id);
          deliveries.splice(silent);
        }
        if (stopping.aborted) return false;
        if (isCareful) {
          if (!(await beginCarefully(partition, deliveries[0] as Delivery))) return false;
          careful.fresh -= 1;
          const isEnough = 2 * batchSize - careful.fresh >= settings.concurrency / held.size;
          if (isEnough && clock.monotonicMs() - careful.sinceMs > CAREFUL_MS) careful.fresh = 0;
        }
        takeIn(partition, deliveries);
        return true;
      } catch (error) {
        // The reader is already past them.
        partition.readFrom(first.id);
        throw error;
      }
    },

    async fillAgain(partition) {
      if (partition.careful.again > 0 && !mayBeginCarefully(partition)) return false;
      const { again, dueAtMs } = partition;
      if (clock.monotonicMs() < dueAtMs || again.size > MOST_REDELIVERIES / 2) return false;
      // Later writes make it due again.
      partition.dueAtMs = Number.POSITIVE_INFINITY;
      try {
        return await takeDue(partition, dueAtMs);
      } catch (error) {
        partition.dueAtMs = dueAtMs;
        throw error;
      }
    },
  };
}

/**
 * Reads the next batch while the last one is handled. Messages behind another of their key,
 * recorded ones and resting ones do not count, so a slow key or head holds up nothing else.
 */
function hasRoom(window: readonly Delivery[], batchSize: number): boolean {
  if (window.length <= batchSize) return true;
  if (window.length > MOST_AHEAD) return false;
  const keys = new Set<string>();
  let others = 0;
  for (const { message, outcome, recorded, rests } of window) {
    if (recorded || rests) continue;
    if (outcome !== undefined || message.orderingKey === null) others += 1;
    else keys.add(message.orderingKey);
  }
  return others + keys.size <= batchSize;
}

function laterOf(known: string | undefined, id: string): string {
  return known === undefined || compareIds(known, id) < 0 ? id : known;
}

function mayBeRecorded(partition: Partition, ids: readonly string[]): boolean {
  const { messages, toId } = partition.unsure;
  const [first = "0"] = ids;
  if (messages <= 0 || toId === undefined || compareIds(first, toId) > 0) return false;
  partition.unsure = { messages: messages - ids.length, toId };
  return true;
}

function endBefore(lastId: string, untilId: string | undefined): string {
  return untilId !== undefined && compareIds(untilId, lastId) < 0 ? untilId : lastId;
}

/**
 * Leaves messages that have not begun to the next owner or a later time, unless a later one has
 * begun.
 */
export function cutBack(partition: Partition): void {
  const { window, again } = partition;
  const lastStarted = window.findLastIndex(({ startedMs, recorded }) => startedMs !== undefined && !recorded);
  const open = window.findIndex(({ outcome }) => outcome === undefined);
  // The finished head may be being written.
  const cut = window.splice(Math.max(lastStarted + 1, open === -1 ? window.length : open));
  for (const delivery of cut) {
    delivery.dropped = true;
    partition.letGo(delivery);
    if (isUnrecorded(delivery)) partition.unrecorded -= 1;
  }
  const [first] = cut;
  const last = cut.at(-1);
  if (first !== undefined && last !== undefined) {
    partition.readFrom(first.message.id);
    // Some of them may be recorded.
    partition.unsure = { messages: MOST_RECORDED_AHEAD, toId: laterOf(partition.unsure.toId, last.message.id) };
  }
  for (const [id, delivery] of again) {
    delivery.dropped = delivery.startedMs === undefined;
    if (!delivery.dropped) continue;
    partition.letGo(delivery);
    again.delete(id);
  }
}
