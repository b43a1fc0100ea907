/**
 * What the demo's consumer does with an order, whatever broker brought it: its effect, once, in the
 * transaction in which the inbox remembers the message; then the confirmation.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Confirmation, type Database, describeError, type Outbox } from "rowpost";
import { createInbox, MissingIdentityError, type ReceivedMessage } from "rowpost/inbox";
import { insertEffect, isOfRun, ORDER_TYPE } from "./tables.ts";

/** What a consumer hands its messages to. */
export interface Orders {
  /**
   * Handles a message and has it confirmed. When it resolves, the broker may be told that it is
   * done. `read` gives the identity, such as `fromKafka`; what is no order of this run is passed
   * over. Rejects only when the run is over.
   */
  receive(read: () => ReceivedMessage): Promise<void>;
  /** The first half: resolves to what is to be confirmed. */
  handle(read: () => ReceivedMessage): Promise<ReceivedMessage | undefined>;
  /** The other half; written with others, soon. A lost one is made up for by the deadline. */
  confirm(message: ReceivedMessage): void;
  /** Different orders. */
  readonly received: number;
  /** Times that an order came again: "at least once" allows it. */
  readonly duplicates: number;
  /** Writes the last confirmations, and gives up what cannot be handled. */
  close(): Promise<void>;
}

export interface OrdersParts {
  readonly database: Database;
  readonly outbox: Outbox;
  readonly run: string;
  readonly onTrouble: (text: string) => void;
}

/** Name of the consumer in the inbox. */
const CONSUMER = "demo";
/** Between two tries while the database is away. */
const AGAIN_MS = 200;

/** Makes the inbox's table where it is missing. */
export async function openOrders({ database, outbox, run, onTrouble }: OrdersParts): Promise<Orders> {
  const inbox = createInbox({ database, consumer: CONSUMER, logger: "silent" });
  await inbox.migrate();
  const ending = new AbortController();
  const waiting: Confirmation[] = [];
  let confirming = Promise.resolve();
  let received = 0;
  let duplicates = 0;

  async function handle(read: () => ReceivedMessage): Promise<ReceivedMessage | undefined> {
    const message = identityOf(read);
    if (message === undefined || !isOfRun(run, message.key)) return undefined;
    for (;;) {
      try {
        const { outcome } = await inbox.handle(database, { message }, async (tx) => {
          await tx.query(insertEffect(database.dialect), [message.key]);
        });
        if (outcome === "handled") received += 1;
        else duplicates += 1;
        return message;
      } catch (error) {
        if (ending.signal.aborted) throw error;
        onTrouble(`consumer: ${describeError(error)}`);
        await sleep(AGAIN_MS, undefined, { signal: ending.signal });
      }
    }
  }

  /** All that have come together by now, in one statement. */
  async function confirmWaiting(): Promise<void> {
    const batch = waiting.splice(0);
    if (batch.length === 0) return;
    await outbox.confirm(batch).catch((error: unknown) => onTrouble(`confirmation: ${describeError(error)}`));
  }

  function confirm({ type, key }: ReceivedMessage): void {
    waiting.push({ type, key });
    if (waiting.length === 1) confirming = confirming.then(confirmWaiting);
  }

  return {
    handle,
    confirm,
    async receive(read) {
      const message = await handle(read);
      if (message !== undefined) confirm(message);
    },
    get received() {
      return received;
    },
    get duplicates() {
      return duplicates;
    },
    async close() {
      ending.abort();
      await confirming;
    },
  };
}

/** Undefined: a message of another program, which shares the topic. */
function identityOf(read: () => ReceivedMessage): ReceivedMessage | undefined {
  try {
    const message = read();
    return message.type === ORDER_TYPE ? message : undefined;
  } catch (error) {
    if (error instanceof MissingIdentityError) return undefined;
    throw error;
  }
}
