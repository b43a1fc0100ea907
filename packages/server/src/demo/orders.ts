/**
 * Handles the demo's orders from any broker: the effect and the confirmation, once, in the
 * transaction of the inbox.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Database, describeError, type Logger, type Outbox, type Transaction } from "rowpost";
import { createInbox, type Inbox, MissingIdentityError, type ReceivedMessage } from "rowpost/inbox";
import type { CommonOptions } from "../consumers/place.ts";
import { insertEffect, isOfRun, ORDER_TYPE } from "./tables.ts";

export interface Orders {
  readonly options: CommonOptions;
  /**
   * For clients without a consumer there. Acknowledge the message when it resolves; rejects only
   * when the run is over. `read` returns the identity, such as `fromSqs`.
   */
  receive(read: () => ReceivedMessage): Promise<void>;
  readonly received: number;
  readonly duplicates: number;
  close(): void;
}

export interface OrdersParts {
  readonly database: Database;
  readonly outbox: Outbox;
  readonly run: string;
  readonly logger: Logger;
}

const CONSUMER = "demo";
const AGAIN_MS = 200;

export async function openOrders({ database, outbox, run, logger }: OrdersParts): Promise<Orders> {
  const inbox = createInbox({ database, consumer: CONSUMER, logger: "silent" });
  await inbox.migrate();
  const ending = new AbortController();
  const counts = { handled: 0, duplicate: 0 };
  const counting: Inbox = {
    ...inbox,
    async handle(on, handling, handler) {
      const done = await inbox.handle(on, handling, handler);
      if (isOfRun(run, done.key)) counts[done.outcome] += 1;
      return done;
    },
  };

  async function handler({ type, key }: ReceivedMessage, { tx }: { readonly tx: Transaction }): Promise<void> {
    // Another program or an earlier run may share the topic.
    if (type !== ORDER_TYPE || !isOfRun(run, key)) return;
    await tx.query(insertEffect(database.dialect), [key]);
    await outbox.confirm([{ type, key }], { tx });
  }

  return {
    options: {
      inbox: counting,
      handler,
      logger,
      retry: { maxAttempts: Number.POSITIVE_INFINITY, maxMs: AGAIN_MS },
      // A message without identity is another program's and counts as handled.
      unhandled: () => undefined,
    },
    async receive(read) {
      for (;;) {
        try {
          const message = read();
          await counting.handle(database, { message }, (tx) => handler(message, { tx }));
          return;
        } catch (error) {
          if (error instanceof MissingIdentityError) return;
          if (ending.signal.aborted) throw error;
          logger.warn(`an order was not handled and is tried again: ${describeError(error)}`);
          await sleep(AGAIN_MS, undefined, { signal: ending.signal });
        }
      }
    },
    get received() {
      return counts.handled;
    },
    get duplicates() {
      return counts.duplicate;
    },
    close: () => ending.abort(),
  };
}
