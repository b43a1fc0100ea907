/** Reports to the server that delivered messages are still being handled. */
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { NatsConsumeConnection } from "./connection.ts";

export interface Keeping {
  keep(reply: string): void;
  isLost(reply: string): boolean;
  letGo(reply: string): void;
  close(): void;
}

interface Parts {
  readonly connection: NatsConsumeConnection;
  readonly clock: Clock;
  readonly ackWaitMs: number;
}

/** Renewals within the time for which a message is ours. */
const LOOKS = 3;

export function createKeeping({ ackWaitMs, clock, connection }: Parts): Keeping {
  /** Monotonic: until then the server gives it to no other consumer. */
  const held = new Map<string, number>();
  let timer: Timer | undefined = clock.setTimer(look, ackWaitMs / LOOKS);

  function look(): void {
    timer = clock.setTimer(look, ackWaitMs / LOOKS);
    // A failed renewal is retried while there is time.
    if (held.size > 0) renew().catch(() => undefined);
  }

  function isLost(reply: string): boolean {
    return clock.monotonicMs() >= (held.get(reply) ?? Number.NEGATIVE_INFINITY);
  }

  async function renew(): Promise<void> {
    const untilMs = clock.monotonicMs() + ackWaitMs;
    const replies = [...held.keys()];
    for (const reply of replies) connection.publish(reply, "+WPI");
    // The server has read them when it answers.
    await connection.flush();
    // A lost message stays lost: during a disconnect these reports waited here, and another
    // consumer may have it.
    for (const reply of replies) if (!isLost(reply)) held.set(reply, untilMs);
  }

  return {
    keep: (reply) => void held.set(reply, clock.monotonicMs() + ackWaitMs),
    isLost,
    letGo: (reply) => void held.delete(reply),
    close() {
      timer?.cancel();
      timer = undefined;
    },
  };
}
