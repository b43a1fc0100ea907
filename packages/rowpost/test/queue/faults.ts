/** A queue whose database fails where a test says: the real work is done, its answer replaced. */
import type { Database } from "../../src/databases/database.ts";
import { createQueue } from "../../src/queue/index.ts";
import type { ConsumptionStore } from "../../src/queue/store.ts";
import type { Transaction } from "../../src/transactions/executor.ts";
import { createMembers } from "./members.ts";
import { type OpenQueue, type OpenQueueOptions, openQueue, type QueuePlace } from "./places.ts";

/** Instead of a method: gets the real one. */
type Around<Method> = Method extends (...args: infer Args) => infer Result
  ? (real: (...args: Args) => Result, ...args: Args) => Result
  : never;

/** What a test puts around the calls of the members; absent: nothing. */
export interface Faults {
  transaction?: (<T>(real: () => Promise<T>) => Promise<T>) | undefined;
  heldUp?: Around<ConsumptionStore["heldUp"]> | undefined;
  settle?: Around<ConsumptionStore["settle"]> | undefined;
}

/** As {@link openQueue}. `faults` may be changed at any time. */
export async function openFaultyQueue(
  make: () => Promise<QueuePlace>,
  options: OpenQueueOptions = {},
): Promise<OpenQueue & { readonly faults: Faults }> {
  const opened = await openQueue(make, options);
  const faults: Faults = {};
  const queue = createQueue({ database: around(opened.database, faults) });
  const members = createMembers(queue, options.usual);
  return {
    ...opened,
    members,
    faults,
    async close() {
      delete faults.transaction;
      delete faults.heldUp;
      delete faults.settle;
      await members.stopAll();
      await queue.close();
      await opened.close();
    },
  };
}

function around(database: Database, faults: Faults): Database {
  const store = (): ReturnType<Database["queue"]["store"]> => {
    const real = database.queue.store();
    return {
      ...real,
      consumption(key, more) {
        const consumption = real.consumption(key, more);
        return {
          ...consumption,
          heldUp: (...args) =>
            faults.heldUp?.((...real) => consumption.heldUp(...real), ...args) ?? consumption.heldUp(...args),
          settle: (...args) =>
            faults.settle?.((...real) => consumption.settle(...real), ...args) ?? consumption.settle(...args),
        };
      },
    };
  };
  return {
    ...database,
    queue: { ...database.queue, store },
    transaction<T>(work: (tx: Transaction) => Promise<T>, on?: unknown): Promise<T> {
      const real = (): Promise<T> => database.transaction(work, on);
      return faults.transaction?.(real) ?? real();
    },
  };
}
