/** A relay's broker from start to stop: whether it can be used at all, and who closes it. */
import type { Broker } from "../brokers/broker.ts";
import { withDeadline } from "../runtime/deadline.ts";
import { describeError } from "../runtime/errors.ts";
import type { RelaySettings } from "./options.ts";

export interface BrokerUse {
  /**
   * Asks the broker, at most for the publish timeout. Rejects with what no waiting mends: a missing
   * package, wrong credentials, options that cannot work. A broker that is away, or slow to answer,
   * is told of and waited for by the relay.
   */
  check(stopping: AbortSignal): Promise<void>;
  /** Closes the broker, when it is the relay's to close and no other relay uses it. */
  end(): Promise<void>;
}

/** Our adapters say goodbye for half a second at most; others may not have thought of it. */
const CLOSE_MS = 1_000;

/** Relays of this process that were made and not stopped, by their broker. */
const users = new WeakMap<Broker, number>();

/** Counts from here to `end` as one that uses the broker. */
export function useBroker(
  broker: Broker,
  {
    clock,
    closeBroker,
    logger,
    publishTimeoutMs,
  }: Pick<RelaySettings, "clock" | "closeBroker" | "logger" | "publishTimeoutMs">,
): BrokerUse {
  users.set(broker, (users.get(broker) ?? 0) + 1);

  function tellAway(reason: string): void {
    logger.error("the broker cannot be used yet; messages wait until it can", { broker: broker.name, reason });
  }

  return {
    async check(stopping) {
      const checked = broker.check().then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      const answered = new AbortController();
      const limit = clock
        .sleep(publishTimeoutMs, AbortSignal.any([answered.signal, stopping]))
        .then(() => "late" as const);
      const verdict = await Promise.race([checked, limit]);
      answered.abort();
      if (verdict === "late") {
        if (!stopping.aborted) tellAway(`no answer within ${publishTimeoutMs} ms`);
      } else if (verdict !== undefined) {
        if (isLasting(verdict.error)) throw verdict.error;
        tellAway(describeError(verdict.error));
      }
    },
    async end() {
      const left = (users.get(broker) ?? 1) - 1;
      users.set(broker, left);
      if (left > 0 || !closeBroker) return;
      await withDeadline(() => broker.close(), { what: "closing", ms: CLOSE_MS }).catch((error: unknown) => {
        logger.error("the broker could not be closed", { broker: broker.name, error: describeError(error) });
      });
    },
  };
}

/** By shape: an adapter may come with a copy of rowpost of its own. */
function isLasting(error: unknown): boolean {
  return error instanceof Error && "code" in error && "retriable" in error && error.retriable === false;
}
