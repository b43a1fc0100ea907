/** Works on bulk operations, whoever has started them, one batch after the other. */
import { randomUUID } from "node:crypto";
import { type BulkStore, describeError, type Logger } from "rowpost";

/** Another worker goes on after this long, when this one has died. */
const LEASE_MS = 10_000;
const IDLE_MS = 2_000;
const AFTER_FAILURE_MS = 5_000;

export interface OperationWorker {
  /** There may be something to do. */
  wake(): void;
  /** Ends after the batch that runs. */
  close(): Promise<void>;
}

/** Begins at once. */
export function createOperationWorker(bulk: BulkStore, logger: Logger): OperationWorker {
  const worker = { owner: randomUUID(), leaseMs: LEASE_MS };
  let isClosed = false;
  let wakeUp: (() => void) | undefined;

  function pause(ms: number, { wakes }: { readonly wakes: boolean }): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(end, ms);
      wakeUp = () => (wakes || isClosed ? end() : undefined);
    });
  }

  async function run(): Promise<void> {
    while (!isClosed) {
      try {
        const step = await bulk.work(worker);
        if (step === undefined) await pause(IDLE_MS, { wakes: true });
        else if ("waitMs" in step) await pause(Math.min(step.waitMs, IDLE_MS), { wakes: true });
      } catch (error) {
        if (isClosed) return;
        logger.warn("a bulk operation could not go on; tried again", { error: describeError(error) });
        await pause(AFTER_FAILURE_MS, { wakes: false });
      }
    }
  }

  const running = run();
  return {
    wake: () => wakeUp?.(),
    async close() {
      isClosed = true;
      wakeUp?.();
      await running;
      await bulk.close();
    },
  };
}
