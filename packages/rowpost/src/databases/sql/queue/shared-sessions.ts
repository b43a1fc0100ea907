/**
 * The sessions of all consumers of a queue: one for the leases, whose lock says that they live, and
 * a few for what they read and write. A statement of one keeps no other waiting.
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

/** One consumer's share of them. */
export interface SharedSessions extends Pick<LeaseStore, "freeLocks"> {
  readonly heartbeat: ReturnType<typeof createBeats>;
  readonly looks: Looks;
  /** Statements of one kind one after the other, each on a session that is free. */
  readonly slots: Pick<SessionSlots, "retry" | "use">;
  onSessionLost(listener: () => void): void;
  /** The last one closes the sessions. */
  close(): Promise<void>;
}

interface Sharing extends Pick<SharedSessions, "freeLocks" | "heartbeat" | "looks"> {
  readonly slots: SessionSlots;
  readonly pool: WorkPool;
  /** What each consumer does when the session of the leases is lost. */
  readonly consumers: Set<(() => void)[]>;
}

/** Those with the same limit for locks, which depends on the lease, share their sessions. */
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
    // Beside the one that is taken first.
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
        // That of the others here: it is this session's own, for which PostgreSQL finds it free.
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
