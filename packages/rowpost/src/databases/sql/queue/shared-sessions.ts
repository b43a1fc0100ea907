/**
 * Sessions of all consumers of a queue: one for the leases, whose lock shows that they live, and a
 * few for reads and writes.
 */
import type { LeaseStore } from "../../../relay/store.ts";
import type { QueueSql, Session } from "../../database.ts";
import { createSessionSlots, type SessionSlots } from "../session-slots.ts";
import { createTurns } from "../turns.ts";
import { createBeats, GATHER_MS } from "./beats.ts";
import { createGathered } from "./gathered.ts";
import { createLooks, type Looks } from "./looks.ts";
import { createWorkPool, type WorkPool } from "./work-pool.ts";

export type SessionParts = Pick<QueueSql, "connect" | "sharedSession" | "statements" | "words">;

export interface SharedSessions extends Pick<LeaseStore, "freeLocks"> {
  readonly heartbeat: ReturnType<typeof createBeats>;
  readonly looks: Looks;
  /** Statements of one kind in sequence, each on a free session. */
  readonly slots: Pick<SessionSlots, "retry" | "use">;
  onSessionLost(listener: () => void): void;
  /** The last consumer closes the sessions. */
  close(): Promise<void>;
}

interface Sharing extends Pick<SharedSessions, "freeLocks" | "heartbeat" | "looks"> {
  readonly slots: SessionSlots;
  readonly pool: WorkPool;
  /** Called for each consumer when the lease session is lost. */
  readonly consumers: Set<(() => void)[]>;
}

/** Consumers with the same lock limit, which depends on the lease, share their sessions. */
export function createSharedSessions(parts: SessionParts): (lockWaitTimeoutMs: number) => SharedSessions {
  const all = new Map<number, Sharing>();
  return (lockWaitTimeoutMs) => {
    const sharing = all.get(lockWaitTimeoutMs) ?? open(parts, lockWaitTimeoutMs);
    all.set(lockWaitTimeoutMs, sharing);
    const { pool, slots, consumers, freeLocks, heartbeat, looks } = sharing;
    const listeners: (() => void)[] = [];
    consumers.add(listeners);
    const turns = new Map<string, ReturnType<typeof createTurns>>();
    const run = <T>(kind: string, work: (session: Session) => Promise<T>): Promise<T> => {
      const turn = turns.get(kind) ?? createTurns();
      turns.set(kind, turn);
      return turn.take(() => pool.run(work));
    };
    return {
      freeLocks,
      heartbeat,
      looks,
      slots: { retry: run, use: run },
      onSessionLost: (listener) => void listeners.push(listener),
      async close() {
        consumers.delete(listeners);
        if (consumers.size > 0 || all.get(lockWaitTimeoutMs) !== sharing) return;
        all.delete(lockWaitTimeoutMs);
        await slots.close();
      },
    };
  };
}

function open({ connect, sharedSession, statements, words }: SessionParts, lockWaitTimeoutMs: number): Sharing {
  const consumers = new Set<(() => void)[]>();
  const onLost = (): void => {
    for (const listener of [...consumers].flat()) listener();
  };
  const slots = createSessionSlots({
    proveLost: false,
    shared: sharedSession,
    // All but the first.
    closesIdle: (slot) => slot.startsWith("work") && slot !== "work 1",
    connect: (slot) =>
      connect({
        purpose: slot === "lease" ? "lease" : "relay",
        of: "consumer",
        lockWaitTimeoutMs,
        ...(slot === "lease" ? { onLost } : {}),
      }),
  });
  const pool = createWorkPool(slots);
  const freeLocks = createGathered({
    waitMs: GATHER_MS,
    async run(asked: readonly (readonly string[])[]) {
      const locks = [...new Set(asked.flat())];
      const free = await slots.use("lease", async (session) => {
        const found = new Set(await session.freeLocks(locks));
        // The lock shared by the consumers here is this session's own, which PostgreSQL reports as
        // free to it.
        if (session.lock !== undefined) found.delete(session.lock);
        return found;
      });
      return asked.map((some) => some.filter((lock) => free.has(lock)));
    },
  });
  return {
    slots,
    pool,
    consumers,
    freeLocks,
    heartbeat: createBeats({ beats: statements.beats, onLease: (work) => slots.use("lease", work), pool }),
    looks: createLooks({ statements, words }, pool),
  };
}
