/** Who goes next: messages of one ordering key one after another, everything else side by side, never more at once than there are slots. */
import { onAbort } from "../../runtime/abort.ts";
import { ABORTED, type OutgoingMessage, type PublishResult } from "../broker.ts";

/** A bound on what runs at once, over all calls of a broker. */
export interface Slots {
  /** Starts the task now, or when it is its turn. It must not reject. */
  run(task: () => Promise<void>): void;
}

/** Makes slots; tasks that wait are started in the order in which they came. */
export function createSlots(count: number): Slots {
  let free = count;
  let waiting: (() => Promise<void>)[] = [];
  let next = 0;

  function startNext(): void {
    while (free > 0 && next < waiting.length) {
      const task = waiting[next];
      next += 1;
      if (task === undefined) continue;
      free -= 1;
      void task().finally(() => {
        free += 1;
        startNext();
      });
    }
    if (next === waiting.length) {
      waiting = [];
      next = 0;
    }
  }

  return {
    run(task) {
      waiting.push(task);
      startNext();
    },
  };
}

/** One publish call. */
export interface LaneCall {
  readonly batch: readonly OutgoingMessage[];
  /** Aborted: what has not been started is `notStarted` at once. What has been must be ended by `send` itself. */
  readonly signal: AbortSignal;
  readonly slots: Slots;
  /** Hands one message over. Must not reject, and must settle soon after the signal is aborted. */
  readonly send: (message: OutgoingMessage) => Promise<PublishResult>;
}

/** Runs a call; the results stand in the order of the batch. */
export function publishInLanes({ batch, signal, slots, send }: LaneCall): Promise<PublishResult[]> {
  const results = batch.map((): PublishResult => ABORTED);
  if (batch.length === 0 || signal.aborted) return Promise.resolve(results);
  return new Promise((resolve) => {
    let openLanes = 0;
    // Lanes whose next message waits for a slot: an abort ends them there and then.
    const idleLanes = new Set<() => void>();
    const stopFollowing = onAbort(signal, () => {
      for (const end of idleLanes) end();
    });

    function runLane(indexes: readonly number[]): void {
      let position = 0;
      let ended = false;

      function end(): void {
        if (ended) return;
        ended = true;
        idleLanes.delete(end);
        openLanes -= 1;
        if (openLanes > 0) return;
        stopFollowing();
        resolve(results);
      }

      async function step(): Promise<void> {
        if (ended) return;
        idleLanes.delete(end);
        const index = indexes[position] ?? 0;
        const message = batch[index];
        const result = message === undefined ? undefined : await send(message);
        if (result !== undefined) results[index] = result;
        position += 1;
        if (result?.status !== "sent") stopBehind(indexes.slice(position), message?.orderingKey);
        if (result?.status !== "sent" || position === indexes.length || signal.aborted) end();
        else wait();
      }

      function wait(): void {
        idleLanes.add(end);
        slots.run(step);
      }

      wait();
    }

    function stopBehind(indexes: readonly number[], orderingKey: string | undefined): void {
      const reason = `an earlier message of ordering key ${orderingKey ?? ""} failed`;
      for (const index of indexes) results[index] = { status: "notStarted", reason };
    }

    const lanes = lanesOf(batch);
    openLanes = lanes.length;
    for (const indexes of lanes) runLane(indexes);
  });
}

/** Indexes of the batch, by ordering key; a message without one is a lane of its own. In the order of each lane's first message. */
function lanesOf(batch: readonly OutgoingMessage[]): readonly (readonly number[])[] {
  const lanes: number[][] = [];
  const laneByKey = new Map<string, number[]>();
  for (const [index, { orderingKey }] of batch.entries()) {
    const lane = orderingKey === undefined ? undefined : laneByKey.get(orderingKey);
    if (lane !== undefined) {
      lane.push(index);
      continue;
    }
    const opened = [index];
    lanes.push(opened);
    if (orderingKey !== undefined) laneByKey.set(orderingKey, opened);
  }
  return lanes;
}
