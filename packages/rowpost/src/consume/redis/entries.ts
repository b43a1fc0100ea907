/**
 * Entries pending in the group under our name, from any connection. Other members claim entries
 * that were idle for a time, so ours are renewed while they wait or are handled.
 */
import type { Clock, Timer } from "../../runtime/clock.ts";
import { BrokerError } from "../../runtime/errors.ts";
import { answered, type Connection, type Membership } from "./connection.ts";
import type { RedisDelivered } from "./message.ts";

export interface Lent {
  readonly raw: RedisDelivered;
  /** Monotonic: until then no other member claims it. */
  expiresAtMs: number;
}

export interface Entries {
  lend(raw: RedisDelivered): Lent | undefined;
  isLost(lent: Lent): boolean;
  /** Rejects with the reason if it could not be acknowledged. */
  acknowledge(lent: Lent): Promise<void>;
  giveBack(lent: Lent, inMs: number): Promise<void>;
  /** Gives back the rest pending under our name, and removes the name from the group. */
  leave(stream: string): Promise<void>;
  close(): void;
}

interface Parts extends Membership {
  readonly connection: () => Connection;
  readonly clock: Clock;
  readonly claimAfterMs: number;
  readonly deleteHandled: boolean;
}

const LOOKS = 3;
const PAUSE_MS = 100;
/** Longer than any member waits before it claims. */
const LONG_IDLE_MS = 7 * 86_400_000;
/** Owner of returned entries; no process uses this name. */
export const NOBODY = "rowpost-given-back";

export function createEntries(parts: Parts): Entries {
  const { claimAfterMs, clock, group, member } = parts;
  const held = new Map<string, Lent>();
  let timer: Timer | undefined = clock.setTimer(look, claimAfterMs / LOOKS);

  const placeOf = ({ id, stream }: RedisDelivered): string => `${stream}\n${id}`;
  const isLost = (lent: Lent): boolean => clock.monotonicMs() >= lent.expiresAtMs;

  function look(): void {
    timer = clock.setTimer(look, claimAfterMs / LOOKS);
    // A failed renewal is retried while there is time.
    for (const stream of new Set([...held.values()].map(({ raw }) => raw.stream))) renew(stream).catch(() => undefined);
  }

  /** A lost entry is not taken back from its new owner. */
  async function renew(stream: string): Promise<void> {
    const ours = [...held.values()].filter((lent) => lent.raw.stream === stream && !isLost(lent));
    if (ours.length === 0) return;
    const untilMs = clock.monotonicMs() + claimAfterMs;
    // JUSTID: does not count as another delivery.
    const ids = ours.map(({ raw }) => raw.id);
    await answered(parts.connection().xclaim(stream, group, member, 0, ...ids, "JUSTID"));
    for (const lent of ours) lent.expiresAtMs = untilMs;
  }

  /** Asks again while the connection is away and the entry is still ours. */
  async function settle<Result>(lent: Lent, ask: (connection: Connection) => Promise<Result>): Promise<Result> {
    held.delete(placeOf(lent.raw));
    for (;;) {
      try {
        return await answered(ask(parts.connection()));
      } catch (error) {
        if (clock.monotonicMs() + PAUSE_MS >= lent.expiresAtMs || timer === undefined) throw error;
        await clock.sleep(PAUSE_MS);
      }
    }
  }

  function release(connection: Connection, stream: string, ids: readonly string[], idleMs: number): Promise<unknown> {
    return connection.xclaim(stream, group, NOBODY, 0, ...ids, "IDLE", idleMs, "JUSTID");
  }

  return {
    lend(raw) {
      const known = held.get(placeOf(raw));
      if (known !== undefined && !isLost(known)) return undefined;
      const lent: Lent = { raw, expiresAtMs: clock.monotonicMs() + claimAfterMs };
      held.set(placeOf(raw), lent);
      return lent;
    },
    isLost,
    async acknowledge(lent) {
      const { id, stream } = lent.raw;
      const count = await settle(lent, (connection) => connection.xack(stream, group, id));
      if (Number(count) !== 1) {
        throw new BrokerError(
          "NOT_PENDING",
          `the entry ${id} of ${stream} was not pending in the group ${group} any more`,
        );
      }
      if (parts.deleteHandled) await answered(parts.connection().xdel(stream, id)).catch(() => undefined);
    },
    // If it fails, the entry is claimed anyway once it was idle for long enough.
    async giveBack(lent, inMs) {
      if (isLost(lent)) {
        held.delete(placeOf(lent.raw));
        return;
      }
      const { id, stream } = lent.raw;
      const idleMs = inMs === 0 ? LONG_IDLE_MS : Math.max(0, claimAfterMs - inMs);
      await settle(lent, (connection) => release(connection, stream, [id], idleMs)).catch(() => undefined);
    },
    async leave(stream) {
      const connection = parts.connection();
      const pending = async (): Promise<string[]> => {
        const rows = await answered(connection.xpending(stream, group, "-", "+", 100, member));
        return (rows as readonly (readonly [string])[]).map(([id]) => id);
      };
      for (let ids = await pending(); ids.length > 0; ids = await pending())
        await answered(release(connection, stream, ids, LONG_IDLE_MS));
      // It would drop entries pending under the name.
      await answered(connection.xgroup("DELCONSUMER", stream, group, member));
    },
    close() {
      timer?.cancel();
      timer = undefined;
    },
  };
}
