/** A broker from its start to its end: what every adapter does around a publish call. */
import { BrokerError, describeError } from "../../runtime/errors.ts";
import type { Broker, BrokerFeatures, OutgoingMessage, PublishOptions, PublishResult } from "../broker.ts";
import { type AbortScope, createAbortScope } from "./abort-scope.ts";
import { closedFailure, failed } from "./failures.ts";
import { ABORTED, failBatch } from "./results.ts";

/** What is an adapter's own. */
export interface Adapter {
  readonly name: string;
  /** The name as people write it, for the reason of a failure. */
  readonly title: string;
  /** See {@link Broker.target}. */
  readonly target?: string | undefined;
  /** Asked for each time: a limit of the server may become known later. */
  readonly features: () => BrokerFeatures;
  /** At least one message; the scope is aborted at the deadline, and when the broker is closed. */
  readonly publish: (
    batch: readonly OutgoingMessage[],
    scope: AbortScope,
    options: PublishOptions,
  ) => Promise<PublishResult[]>;
  readonly check: () => Promise<void>;
  /** Ends what was opened. The running calls were aborted before. Called once. */
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
        // A fault of the adapter, or of something in a message: what was handed over may be stored.
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
        // Before the calls are told: one that is made by what they give up is late already.
        closed = Promise.resolve().then(close);
        closing.abort(new Error(closedAs.reason));
      }
      return closed;
    },
  };
}
