/** What a member takes in: new messages, and redeliveries that are due; and what it gives back. */
import { compareIds } from "../../runtime/compare-ids.ts";
import type { ConsumptionStore } from "../store.ts";
import type { ConsumerSettings } from "./options.ts";
import { type Delivery, deliveryOf, type Partition } from "./partition.ts";
import type { Work } from "./work.ts";

/** How often each partition's due redeliveries are looked for. */
const LOOK_AGAIN_MS = 500;
const MOST_REDELIVERIES = 100;

export interface Filling {
  /** True: something was taken in. */
  fill(partition: Partition, lastId: string): Promise<boolean>;
  fillAgain(partition: Partition): Promise<boolean>;
}

export interface FillingOptions {
  readonly settings: ConsumerSettings;
  readonly store: ConsumptionStore;
  readonly work: Work;
  readonly stopping: AbortSignal;
}

export function createFilling({ settings, store, work, stopping }: FillingOptions): Filling {
  const { clock, logger, topic, group } = settings;

  /** Keys that an earlier owner of the partition, or a person, has left behind a redelivery. */
  async function learnHeldUp(partition: Partition, deliveries: readonly Delivery[]): Promise<void> {
    if (settings.onFailed !== "block") return;
    const keys = new Set(deliveries.flatMap(({ message }) => message.orderingKey ?? []));
    const unknown = [...keys].filter((key) => !partition.heldUp.has(key));
    if (unknown.length === 0) return;
    for (const key of await store.heldUp(partition.partition, unknown)) partition.heldUp.add(key);
  }

  return {
    /** The next batch is read while the last one is handled, and no more. */
    async fill(partition, lastId) {
      const { batchSize } = settings;
      if (partition.window.length > batchSize) return false;
      const messages = await partition.read(endBefore(lastId, settings.untilId), batchSize);
      if (messages.length === 0) return false;
      const deliveries = messages.map((message) => deliveryOf(message));
      try {
        await learnHeldUp(partition, deliveries);
        await settings.reach("read");
      } catch (error) {
        // The reader stands behind them already.
        partition.readFrom(messages[0]?.id as string);
        throw error;
      }
      if (stopping.aborted) return false;
      partition.window.push(...deliveries);
      work.begin(partition, deliveries);
      return true;
    },

    async fillAgain(partition) {
      const nowMs = clock.monotonicMs();
      if (nowMs - partition.lookedAgainMs < LOOK_AGAIN_MS || partition.again.size > MOST_REDELIVERIES / 2) return false;
      partition.lookedAgainMs = nowMs;
      // Before the look: one that is settled meanwhile is still among what is due.
      const underWay = new Set(partition.again.keys());
      const due = await store.due(partition.partition, MOST_REDELIVERIES);
      if (due.length === MOST_REDELIVERIES) partition.lookedAgainMs = Number.NEGATIVE_INFINITY;
      const byId = new Map(due.filter(({ id }) => !underWay.has(id)).map((each) => [each.id, each]));
      if (byId.size === 0) return false;
      const messages = await store.readIds([...byId.keys()]);
      if (stopping.aborted) return false;
      const deliveries = messages.map((message) => deliveryOf(message, byId.get(message.id)));
      for (const { message } of deliveries) byId.delete(message.id);
      if (byId.size > 0) {
        const gone = [...byId.values()];
        const ids = gone.map(({ id }) => id);
        logger.warn("messages to be redelivered are gone", { topic, group, ids });
        await store.settle(settings.owner, partition.goneSettlement(gone), {
          ...{ ip: null, port: null, instance: settings.owner },
        });
      }
      for (const delivery of deliveries) partition.again.set(delivery.message.id, delivery);
      work.begin(partition, deliveries);
      return deliveries.length > 0;
    },
  };
}

function endBefore(lastId: string, untilId: string | undefined): string {
  return untilId !== undefined && compareIds(untilId, lastId) < 0 ? untilId : lastId;
}

/**
 * What has not begun is left to the next owner, or to a later time, unless something behind it has
 * begun.
 */
export function cutBack(partition: Partition): void {
  const { window, again } = partition;
  const lastStarted = window.findLastIndex(({ started }) => started);
  const open = window.findIndex(({ outcome }) => outcome === undefined);
  // The head that is finished may be on its way to the table.
  const cut = window.splice(Math.max(lastStarted + 1, open === -1 ? window.length : open));
  for (const delivery of cut) delivery.dropped = true;
  const [first] = cut;
  if (first !== undefined) partition.readFrom(first.message.id);
  for (const [id, delivery] of again) {
    delivery.dropped = !delivery.started;
    if (delivery.dropped) again.delete(id);
  }
}
