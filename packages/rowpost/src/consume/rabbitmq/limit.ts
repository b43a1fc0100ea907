/** Warns about the delivery limit, at which a quorum queue gives up a message without notice. */
import type { Logger } from "../../runtime/logger.ts";
import { type RabbitmqDelivered, returnsOf } from "./message.ts";

interface Parts {
  readonly queue: string;
  readonly deliveryLimit: number;
  /** The limit was configured; otherwise it is RabbitMQ 4's default. */
  readonly isGiven: boolean;
  readonly hasDeadLetters: boolean;
  readonly logger: Logger;
}

export interface Limit {
  opened(version: unknown): void;
  /**
   * Whether the queue gives the message up at its next return. It is then reported unless settled.
   */
  isLast(message: RabbitmqDelivered): boolean;
  settled(message: RabbitmqDelivered): void;
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
