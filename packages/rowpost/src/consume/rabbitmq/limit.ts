/** A quorum queue gives up what comes back too often, and tells nobody: what we say of it. */
import type { Logger } from "../../runtime/logger.ts";
import { type RabbitmqDelivered, returnsOf } from "./message.ts";

interface Parts {
  readonly queue: string;
  readonly deliveryLimit: number;
  /** Somebody has said that the queue has this limit; else it is what RabbitMQ 4 sets. */
  readonly isGiven: boolean;
  readonly hasDeadLetters: boolean;
  readonly logger: Logger;
}

/** The delivery limit of one queue. */
export interface Limit {
  /** At each connection: `version` is the server's. */
  opened(version: unknown): void;
  /** Is the queue to give it up when it comes back once more? It is then told of unless settled. */
  isLast(message: RabbitmqDelivered): boolean;
  settled(message: RabbitmqDelivered): void;
  /** All that are not settled go back now. */
  tellOfReturns(): void;
}

export function createLimit({ deliveryLimit, hasDeadLetters, isGiven, logger, queue }: Parts): Limit {
  const lastOnes = new Set<RabbitmqDelivered>();
  let isSet = false;
  let isTold = hasDeadLetters || deliveryLimit === Number.POSITIVE_INFINITY;

  function warn(): void {
    if (isTold) return;
    isTold = true;
    logger.warn("the queue may drop messages that come back too often; give it a dead letter exchange", {
      queue,
      deliveryLimit,
      option: "deadLetterExchange: true",
    });
  }

  return {
    opened(version) {
      isSet = Number.parseInt(String(version), 10) >= 4;
      if (isGiven) warn();
    },
    isLast(message) {
      const returns = returnsOf(message);
      // Only quorum queues count.
      if (isSet && returns > 0) warn();
      const isLast = returns >= deliveryLimit;
      if (isLast) lastOnes.add(message);
      return isLast;
    },
    settled: (message) => void lastOnes.delete(message),
    tellOfReturns() {
      for (const message of lastOnes) {
        logger.error("a message goes back in what may be its last delivery; the queue may drop it", {
          queue,
          messageId: message.properties.messageId,
          deliveries: returnsOf(message),
          deliveryLimit,
          deadLetterExchange: hasDeadLetters,
        });
      }
      lastOnes.clear();
    },
  };
}
