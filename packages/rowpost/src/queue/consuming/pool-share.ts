/**
 * Limits consumers to half of the application's pool, so that appends and handlers find connections
 * too.
 */
import type { Database } from "../../databases/database.ts";
import type { ConsumerSettings } from "./options.ts";

export interface PoolShare {
  /** `Database.transaction`, in the order of the calls. */
  readonly transaction: Database["transaction"];
  /** The log says where transactions wait. */
  join(
    partitions: number,
    consumer: Pick<ConsumerSettings, "topic" | "group" | "logger">,
    until: AbortSignal,
  ): Promise<void>;
}

/** Shared by all consumers of a queue. */
export function createPoolShare(database: Pick<Database, "poolSize" | "transaction">): PoolShare {
  const waiting: (() => void)[] = [];
  let size = Number.POSITIVE_INFINITY;
  let held = 0;
  let partitions = 0;

  /** Some pools know their size only later. */
  async function look(): Promise<void> {
    size = (await database.poolSize()) ?? Number.POSITIVE_INFINITY;
  }

  const most = (): number => Math.max(1, Math.floor(size / 2));

  function begin(): void {
    while (held < most()) {
      const next = waiting.shift();
      if (next === undefined) return;
      held += 1;
      next();
    }
  }

  return {
    async transaction(work) {
      await look();
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        begin();
      });
      try {
        return await database.transaction(work);
      } finally {
        held -= 1;
        begin();
      }
    },
    async join(more, { topic, group, logger }, until) {
      await look();
      partitions += more;
      until.addEventListener("abort", () => (partitions -= more), { once: true });
      const atOnce = most();
      if (size < 2) {
        logger.warn("the pool has one connection; a handler that asks it for another waits for ever", { topic, group });
      } else if (partitions > atOnce) {
        logger.warn("transactional consumers take half of the pool at most; other partitions wait for their turn", {
          topic,
          group,
          pool: size,
          atOnce,
          partitions,
          raiseBy: 2 * partitions - size,
        });
      }
    },
  };
}
