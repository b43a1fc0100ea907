/** Messages that the server has lent us: it is told of each that it is still being handled. */
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { NatsConsumeConnection } from "./connection.ts";

/** The messages under way on one connection, by the subject that they are answered to. */
export interface Keeping {
  keep(reply: string): void;
  /** May the server have given it to somebody else? */
  isLost(reply: string): boolean;
  letGo(reply: string): void;
  close(): void;
}

interface Parts {
  readonly connection: NatsConsumeConnection;
  readonly clock: Clock;
  readonly ackWaitMs: number;
}

/** In the time for which a message is ours. */
const LOOKS = 3;

export function createKeeping({ ackWaitMs, clock, connection }: Parts): Keeping {
  /** Monotonic: until then the server gives it to nobody else. */
  const held = new Map<string, number>();
  let timer: Timer | undefined = clock.setTimer(look, ackWaitMs / LOOKS);

  function look(): void {
    timer = clock.setTimer(look, ackWaitMs / LOOKS);
    // One that could not be written is looked at again, while there is time.
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
    // One that was lost before stays so: in a cut these words waited here, and it may have another.
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
