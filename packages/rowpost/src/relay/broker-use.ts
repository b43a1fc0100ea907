/** The initial check of a relay's broker, and closing it. */
import type { Broker } from "../brokers/broker.ts";
import { withDeadline } from "../runtime/deadline.ts";
import { describeError } from "../runtime/errors.ts";
import type { RelaySettings } from "./options.ts";

export interface BrokerUse {
  /**
   * Checks the broker within the publish timeout. Rejects with errors that waiting cannot fix: a
   * missing package, wrong credentials, impossible options. A broker that is away or slow is only
   * reported.
   */
  check(stopping: AbortSignal): Promise<void>;
  /** Closes the broker if the relay owns it and no other uses it. */
  end(): Promise<void>;
}

/** rowpost's adapters close within half a second; others may take longer. */
const CLOSE_MS = 1_000;

/** Running relays of this process, by broker. */
const users = new WeakMap<Broker, number>();

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

/** By shape: an adapter may bring its own copy of rowpost. */
function isLasting(error: unknown): boolean {
  return error instanceof Error && "code" in error && "retriable" in error && error.retriable === false;
}
