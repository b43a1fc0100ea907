/**
 * The relay's sessions: one per kind of work, opened at first use and after a loss. So a settle
 * does not wait for a scan, and a lease is renewed while a claim waits for a row lock.
 *
 * All are on one server. After a switchover the old primary may live on read-only and answer scans
 * without an error. The lease session fails because it writes, so after it is reopened, the others
 * are too (rule: one-server).
 */

import { type Cutoff, createCutoff, unlessAborted } from "../../runtime/abort.ts";
import { DatabaseConflictError, DatabaseUnavailableError } from "../../runtime/errors.ts";
import type { Session } from "../database.ts";

/** Kinds of work with a session of their own. */
export type SlotName = "lease" | "scan" | "settle" | "append" | "housekeeping" | `work ${number}`;

export interface SessionSlots {
  /**
   * Runs `work` on the slot's session. A lost session is replaced by the next call, because the
   * outcome of this one is unknown.
   */
  use<T>(slot: SlotName, work: (session: Session) => Promise<T>): Promise<T>;
  /**
   * The same, repeated after a conflict with another transaction, which has no effect: at most 4
   * tries. For work that may run twice.
   */
  retry<T>(slot: SlotName, work: (session: Session) => Promise<T>): Promise<T>;
  /**
   * Drops every session, and resolves once none of them, nor one lost earlier, can have a statement
   * that takes effect.
   */
  abandon(): Promise<void>;
  /** Closes every session for good. */
  close(): Promise<void>;
}

export interface SessionSlotsOptions {
  connect(slot: SlotName): Promise<Session>;
  /**
   * True: a lost session is proven dead before the slot gets a new one, because the table cannot
   * tell a late statement of the old session (rule: claim-token).
   */
  readonly proveLost: boolean;
  /** When aborted, all work fails at once and no session is opened any more. */
  readonly signal?: (() => AbortSignal | undefined) | undefined;
  /** SQLite has one handle: all slots share it. */
  readonly shared?: boolean | undefined;
  /** Closes these slots' sessions when idle for a while. Default: none. */
  readonly closesIdle?: ((slot: SlotName) => boolean) | undefined;
  /** Translates an error of the work that is not ours. */
  readonly meaning?: ((error: unknown) => unknown) | undefined;
}

const TRIES = 4;
const IDLE_MS = 5_000;
const CLOSED = "the sessions of this relay are closed; the database did not answer before it stopped";

export function createSessionSlots(options: SessionSlotsOptions): SessionSlots {
  const sessions = new Map<SlotName, Promise<Session>>();
  /** Opened before the lease session, and replaced at their next use. */
  const outdated = new WeakSet<Promise<Session>>();
  let hadLease = false;
  /** Lost, and perhaps still at work on the server. */
  const doubtful = new Set<Session>();
  let closed = false;
  let followed: { readonly signal: AbortSignal; readonly cutoff: Cutoff } | undefined;

  function unlessCut<T>(work: Promise<T>): Promise<T> {
    const signal = options.signal?.();
    if (signal === undefined) return work;
    if (followed?.signal !== signal) {
      followed?.cutoff.release();
      followed = { signal, cutoff: createCutoff(signal) };
    }
    return followed.cutoff.unlessCut(work, () => new DatabaseUnavailableError(CLOSED));
  }

  async function open(slot: SlotName): Promise<Session> {
    // Work that outlives its relay must not open a session that is never closed.
    if (closed || options.signal?.()?.aborted === true) throw new DatabaseUnavailableError(CLOSED);
    if (options.proveLost) await proveDoubtful();
    const session = await options.connect(slot);
    if (slot !== "lease") return session;
    for (const [name, promise] of sessions) if (hadLease && name !== "lease") outdated.add(promise);
    hadLease = true;
    return session;
  }

  function drop(name: SlotName, promise: Promise<Session>): void {
    if (sessions.get(name) === promise) sessions.delete(name);
  }

  async function sessionOf(slot: SlotName): Promise<Session> {
    const name = options.shared === true ? "lease" : slot;
    const known = sessions.get(name);
    if (known !== undefined) {
      const session = await known;
      if (!session.dead && !outdated.has(known)) return session;
      drop(name, known);
      if (options.proveLost) doubtful.add(session);
      // Waits briefly for its running statement.
      else if (!session.dead) void session.close().catch(() => undefined);
      return await sessionOf(slot);
    }
    const opening = open(name);
    sessions.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      drop(name, opening);
      throw error;
    }
  }

  async function proveDoubtful(): Promise<void> {
    for (const session of doubtful) {
      await session.abandon();
      doubtful.delete(session);
    }
  }

  /** Of slots closed when idle. */
  const uses = new Map<SlotName, { count: number; closing?: NodeJS.Timeout }>();

  async function counted<T>(slot: SlotName, work: () => Promise<T>): Promise<T> {
    if (options.shared === true || options.closesIdle?.(slot) !== true) return await work();
    const use = uses.get(slot) ?? { count: 0 };
    uses.set(slot, use);
    clearTimeout(use.closing);
    use.count += 1;
    try {
      return await work();
    } finally {
      use.count -= 1;
      if (use.count === 0) use.closing = setTimeout(() => closeIdle(slot), IDLE_MS).unref();
    }
  }

  function closeIdle(slot: SlotName): void {
    uses.delete(slot);
    const known = sessions.get(slot);
    sessions.delete(slot);
    void known?.then((session) => session.close()).catch(() => undefined);
  }

  async function use<T>(slot: SlotName, work: (session: Session) => Promise<T>): Promise<T> {
    const working = counted(slot, async () => await work(await sessionOf(slot))).catch((error: unknown) => {
      throw options.meaning === undefined ? error : options.meaning(error);
    });
    return await unlessCut(working);
  }

  return {
    use,
    async retry(slot, work) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await use(slot, work);
        } catch (error) {
          if (attempt >= TRIES || !(error instanceof DatabaseConflictError)) throw error;
        }
      }
    },
    async abandon() {
      for (const [name, promise] of [...sessions]) {
        drop(name, promise);
        const session = await promise.catch(() => undefined);
        if (session !== undefined) doubtful.add(session);
      }
      await proveDoubtful();
    },
    async close() {
      closed = true;
      for (const { closing } of uses.values()) clearTimeout(closing);
      const open = [...sessions.values()];
      sessions.clear();
      const closing = open.map((promise) => promise.then((session) => session.close()).catch(() => undefined));
      await unlessAborted(options.signal?.(), Promise.all(closing), () => undefined).catch(() => undefined);
      followed?.cutoff.release();
      followed = undefined;
      // Sessions not proven dead must not keep the process alive; their connections are cut
      // already.
      doubtful.clear();
    },
  };
}
