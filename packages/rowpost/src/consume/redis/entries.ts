/**
 * Entries that are ours: pending in the group under our name, whichever connection they came on.
 * Others claim an entry that has been idle for so long; ours are kept from that while they wait or
 * their handler runs.
 */
import type { Clock, Timer } from "../../runtime/clock.ts";
import { BrokerError } from "../../runtime/errors.ts";
import { answered, type Connection, type Membership } from "./connection.ts";
import type { RedisDelivered } from "./message.ts";

export interface Lent {
  readonly raw: RedisDelivered;
  /** Monotonic: until then nobody else claims it. */
  expiresAtMs: number;
}

export interface Entries {
  /** Undefined: it is under way already. */
  lend(raw: RedisDelivered): Lent | undefined;
  /** May another member have claimed it? */
  isLost(lent: Lent): boolean;
  /** Rejects with why it could not be acknowledged. */
  acknowledge(lent: Lent): Promise<void>;
  /** To be claimed by any member after so long. */
  giveBack(lent: Lent, inMs: number): Promise<void>;
  /** Gives back what else is pending under our name, and takes the name out of the group. */
  leave(stream: string): Promise<void>;
  close(): void;
}

interface Parts extends Membership {
  /** The connection of now; it may be broken. */
  readonly connection: () => Connection;
  readonly clock: Clock;
  readonly claimAfterMs: number;
  readonly deleteHandled: boolean;
}

/** In the time for which an entry is ours. */
const LOOKS = 3;
/** Of an answer, before it is asked for again. */
const PAUSE_MS = 100;
/** Longer than any member waits before it claims. */
const LONG_IDLE_MS = 7 * 86_400_000;
/** Entries that were given back are pending under this name, and no process has it. */
export const NOBODY = "rowpost-given-back";

export function createEntries(parts: Parts): Entries {
  const { claimAfterMs, clock, group, member } = parts;
  const held = new Map<string, Lent>();
  let timer: Timer | undefined = clock.setTimer(look, claimAfterMs / LOOKS);

  const placeOf = ({ id, stream }: RedisDelivered): string => `${stream}\n${id}`;
  const isLost = (lent: Lent): boolean => clock.monotonicMs() >= lent.expiresAtMs;

  function look(): void {
    timer = clock.setTimer(look, claimAfterMs / LOOKS);
    // One that could not be renewed is looked at again, while there is time.
    for (const stream of new Set([...held.values()].map(({ raw }) => raw.stream))) renew(stream).catch(() => undefined);
  }

  /** One that was lost is not taken back from whoever has it. */
  async function renew(stream: string): Promise<void> {
    const ours = [...held.values()].filter((lent) => lent.raw.stream === stream && !isLost(lent));
    if (ours.length === 0) return;
    const untilMs = clock.monotonicMs() + claimAfterMs;
    // JUSTID: not one more delivery.
    const ids = ours.map(({ raw }) => raw.id);
    await answered(parts.connection().xclaim(stream, group, member, 0, ...ids, "JUSTID"));
    for (const lent of ours) lent.expiresAtMs = untilMs;
  }

  /** Asked again while the connection is away and the entry is ours. */
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
    // Where that fails it is claimed all the same, when it has been idle for long enough.
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
      // It would drop what is pending under the name.
      await answered(connection.xgroup("DELCONSUMER", stream, group, member));
    },
    close() {
      timer?.cancel();
      timer = undefined;
    },
  };
}
