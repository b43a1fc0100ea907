/**
 * Tries messages that have come back often one at a time. When a process dies, a quorum queue
 * counts that for all messages that it had, and one of them may be why it died.
 *
 * 1. It dies of m5, and m1 to m9 come back together, each time: all reach the limit with m5.
 * 2. One at a time from the first on, m1 to m4 are handled before it dies. The others come back.
 * 3. It now begins with the last: m9 to m6 are handled as well, and m5 is alone.
 *
 * Their count says from which end, because no process remembers.
 */
import { onAbort, unlessAborted } from "../../runtime/abort.ts";
import type { Logger } from "../../runtime/logger.ts";
import { type Channel, type RabbitmqDelivered, returnsOf } from "./message.ts";

interface Parts {
  readonly queue: string;
  readonly prefetch: number;
  /** Returns after which the queue gives a message up. */
  readonly deliveryLimit: number;
  readonly channel: Channel;
  readonly logger: Logger;
  readonly closing: AbortSignal;
  readonly ended: AbortSignal;
  /** Resolves after one try; never rejects. */
  readonly take: (message: RabbitmqDelivered) => Promise<unknown>;
}

/** Takes messages that came back often; returns false for others. */
export function createAlone(parts: Parts): (message: RabbitmqDelivered) => boolean {
  const { channel, closing, deliveryLimit, ended, logger, queue, take } = parts;
  const from = Math.max(1, Math.floor(deliveryLimit / 2));
  const waiting: RabbitmqDelivered[] = [];
  let isTrying = false;

  /** They are requeued, unless this is their last delivery. */
  function letGo(): void {
    for (const message of waiting.splice(0)) void take(message);
  }

  async function tryAll(): Promise<void> {
    isTrying = true;
    while (waiting.length > 0) {
      // After the server's answer, messages delivered together are here, and it has the previous
      // acknowledgment.
      await unlessAborted(closing, channel.prefetch(parts.prefetch), () => closing.reason);
      const most = Math.max(...waiting.map(returnsOf));
      const message = most % 2 === 0 ? waiting.shift() : waiting.pop();
      if (message === undefined) break;
      logger.warn("a message has come back often and is tried alone: does it end the process?", {
        queue,
        messageId: message.properties.messageId,
        deliveries: returnsOf(message),
        deliveryLimit,
      });
      await take(message);
    }
    isTrying = false;
  }

  const forget = onAbort(closing, letGo);
  onAbort(ended, () => {
    forget();
    letGo();
  });
  return (message) => {
    if (returnsOf(message) < from || closing.aborted) return false;
    waiting.push(message);
    // Rejects if the channel has ended or at a close; the messages are then let go.
    if (!isTrying) tryAll().catch(() => undefined);
    return true;
  };
}
