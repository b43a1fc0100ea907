import { BrokerError, describeError } from "../../runtime/errors.ts";
import type { Broker, BrokerFeatures, OutgoingMessage, PublishOptions, PublishResult } from "../broker.ts";
import { type AbortScope, createAbortScope } from "./abort-scope.ts";
import { closedFailure, failed } from "./failures.ts";
import { ABORTED, failBatch } from "./results.ts";

export interface Adapter {
  readonly name: string;
  readonly title: string;
  /** See {@link Broker.target}. */
  readonly target?: string | undefined;
  /** Called each time, since a limit of the server may become known later. */
  readonly features: () => BrokerFeatures;
  /**
   * Gets at least one message. The scope is aborted at the deadline and when the broker is closed.
   */
  readonly publish: (
    batch: readonly OutgoingMessage[],
    scope: AbortScope,
    options: PublishOptions,
  ) => Promise<PublishResult[]>;
  readonly check: () => Promise<void>;
  /** Closes everything that was opened. Called once, after the running calls were aborted. */
  readonly close: () => Promise<void>;
}

export function createBroker({ name, title, target, features, publish, check, close }: Adapter): Broker {
  const closing = new AbortController();
  const closedAs = closedFailure(title);
  let closed: Promise<void> | undefined;

  return {
    name,
    target,
    get features() {
      return features();
    },
    async publish(batch, options) {
      const { signal } = options;
      if (closed !== undefined) return failBatch(batch, closedAs);
      if (signal.aborted) return batch.map(() => ABORTED);
      if (batch.length === 0) return [];
      const scope = createAbortScope({ deadline: signal, closing: closing.signal });
      try {
        return await publish(batch, scope, options);
      } catch (error) {
        // A bug in the adapter or bad content of a message: what was handed over may be stored.
        scope.abort();
        const fault = failed("unknown", "PUBLISH_FAULT", `the publish call ended by a fault: ${describeError(error)}`);
        return batch.map(() => fault);
      } finally {
        scope.end();
      }
    },
    async check() {
      if (closed !== undefined) throw new BrokerError(closedAs.code, closedAs.reason);
      await check();
    },
    close() {
      if (closed === undefined) {
        // Set before the calls are aborted, so that a call made in reaction is refused.
        closed = Promise.resolve().then(close);
        closing.abort(new Error(closedAs.reason));
      }
      return closed;
    },
  };
}
