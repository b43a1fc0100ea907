/**
 * Followers: messages that wait behind an earlier one of their ordering key, its head. A head may
 * wait for hours (for its retry, delayed, suspended, or failed) or have a long queue. Its followers
 * are moved out of the scans once and cost nothing there:
 *
 *              a scan meets it behind a blocked head
 *   waiting  ─────────────────────────────────────────►  behind (next_retry_at = 3000-01-01 + head)
 *      ▲                                                    │
 *      └────────────────────────────────────────────────────┘
 *        the head was sent or no longer blocks: a batch at a time, the next when the key is free
 *
 * The relay that sees a head go brings them back; it remembers the heads of its keys. For other
 * heads (after a restart, or moved by another relay or a person) the leader's housekeeping checks
 * each head with rows behind it. Bringing a row back too early is harmless: the order of keys is
 * read from the table for each batch (rule: key-order), and the row is set behind again. Setting a
 * row behind locks its head, so that it cannot settle meanwhile and strand its followers.
 */

import { compareIds } from "../../runtime/compare-ids.ts";
import { describeError } from "../../runtime/errors.ts";
import { grouped } from "../../runtime/grouped.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import { scannedToken } from "../row-token.ts";
import type { RelayStore, ScannedMessage } from "../store.ts";

export interface Follower {
  readonly row: ScannedMessage;
  readonly headId: string;
}

export interface Followers {
  /** The known head of a row's key. */
  headOf(row: ScannedMessage): string | undefined;
  /**
   * Moves these out of the scans, one statement at a time. In tables that cannot set rows behind,
   * rows with a time are postponed when they fill their branch.
   */
  setBehind(followers: readonly Follower[], dueFull: boolean): void;
  /** The message no longer blocks its key. */
  gone(orderingKey: string, id: string): void;
  /** Nothing of this key is under way: followers of gone heads may come. */
  keyFreed(orderingKey: string): void;
  /**
   * Brings back followers of gone heads, of those whose turn it is or `all`, and returns their
   * number. For the leader, and before a table counts as drained: the relay that saw a head go may
   * have died.
   */
  release(all?: boolean): Promise<number>;
  /** Total brought back so far. */
  readonly returned: number;
  /** Followers of gone heads are locked by another transaction. */
  readonly isHeld: boolean;
  readonly still: boolean;
  /** Resolves when nothing is under way. Never rejects. */
  idle(): Promise<void>;
}

export interface FollowersOptions {
  readonly store: Pick<RelayStore, "housekeeping">;
  readonly keeper: Pick<LeaseKeeper, "fence">;
  readonly settings: Pick<RelaySettings, "batchSize" | "logger" | "onFailed">;
  /** Otherwise the scans pass over most followers. */
  readonly isAble: () => boolean;
  readonly wake: () => void;
}

/** Housekeeping finds forgotten ones. */
const REMEMBERED_KEYS = 10_000;
/** Heads that one look of housekeeping requests. */
const HEADS_PER_LOOK = 100;
/** Most looks in a row at heads that all still block. */
const LOOKS = 10;
/** How long a follower is postponed. */
const PUT_OFF_MS = 5_000;

interface Heads {
  readonly standing: Set<string>;
  readonly gone: Set<string>;
  /** Nothing suggests that one no longer blocks. */
  isCertain: boolean;
}

export function createFollowers({ store, keeper, settings, isAble, wake }: FollowersOptions): Followers {
  const { housekeeping } = store;
  const { batchSize } = settings;
  const heads = new Map<string, Heads>();
  const freed = new Set<string>();
  let running: Promise<void> | undefined;
  let afterHeadId = "0";
  let returned = 0;
  let isHeld = false;
  /** A second look would skip rows locked by the first. */
  let looking: Promise<unknown> = Promise.resolve();

  function start(work: () => Promise<void>): void {
    running ??= work()
      .catch((error: unknown) => {
        settings.logger.warn("followers of an ordering key could not be moved; it is tried again", {
          error: describeError(error),
        });
      })
      .finally(() => {
        running = undefined;
        if (freed.size > 0) start(bringBack);
      });
  }

  async function move(followers: readonly Follower[]): Promise<void> {
    // The head may go as soon as the statement is done.
    for (const [key, own] of grouped(followers, ({ row }) => row.orderingKey ?? "")) remember(key, own);
    const rows = followers.map(({ row, headId }) => ({ ...scannedToken(row), headId }));
    const moved = await housekeeping.setBehind({ fence: keeper.fence(), rows });
    // A head no longer blocks, or a row changed: ask the table again.
    for (const { row } of followers) {
      const known = heads.get(row.orderingKey ?? "");
      if (known !== undefined) known.isCertain = moved === rows.length;
    }
  }

  async function putOff(followers: readonly Follower[]): Promise<void> {
    const rows = followers.map(({ row }) => scannedToken(row));
    await housekeeping.park({ fence: keeper.fence(), rows, parkMs: PUT_OFF_MS });
  }

  function remember(key: string, followers: readonly Follower[]): void {
    const known = heads.get(key) ?? { standing: new Set(), gone: new Set(), isCertain: true };
    for (const { headId } of followers) if (!known.gone.has(headId)) known.standing.add(headId);
    // An old head may have been removed by others unnoticed.
    heads.delete(key);
    heads.set(key, known);
    const [oldest] = heads.keys();
    if (heads.size > REMEMBERED_KEYS && oldest !== undefined) heads.delete(oldest);
  }

  async function bringBack(): Promise<void> {
    const keys = [...freed];
    freed.clear();
    for (const key of keys) {
      const known = heads.get(key);
      if (known === undefined || known.gone.size === 0) continue;
      // Each head separately, since the key's first message may be behind any of them, and a batch
      // of another head's followers would only wait for it.
      for (const headId of [...known.gone]) {
        const count = await broughtBack([headId]);
        if (count < batchSize) known.gone.delete(headId);
      }
      if (known.gone.size + known.standing.size === 0) heads.delete(key);
    }
  }

  async function broughtBack(headIds: readonly string[]): Promise<number> {
    const count = await housekeeping.bringBack({ headIds, limit: batchSize });
    returned += count;
    if (count > 0) wake();
    return count;
  }

  async function release(all: boolean): Promise<number> {
    if (!isAble()) return 0;
    if (all) afterHeadId = "0";
    isHeld = false;
    for (let look = 0; all || look < LOOKS; look += 1) {
      const found = await housekeeping.headsOfBehind({
        afterHeadId,
        limit: HEADS_PER_LOOK,
        failedBlocks: settings.onFailed === "block",
      });
      const isEnd = found.length < HEADS_PER_LOOK;
      afterHeadId = isEnd ? "0" : (found.at(-1)?.headId ?? "0");
      const headIds = found.filter(({ stands }) => !stands).map(({ headId }) => headId);
      const count = headIds.length === 0 ? 0 : await broughtBack(headIds);
      if (count > 0) return count;
      isHeld ||= headIds.length > 0;
      if (isEnd) break;
    }
    return 0;
  }

  return {
    headOf({ id, orderingKey }) {
      const known = orderingKey === null ? undefined : heads.get(orderingKey);
      if (known?.isCertain !== true) return undefined;
      for (const headId of known.standing) if (compareIds(headId, id) < 0) return headId;
      return undefined;
    },
    setBehind(followers, dueFull) {
      if (isAble()) {
        if (followers.length > 0) start(() => move(followers));
        return;
      }
      const due = dueFull ? followers.filter(({ row }) => row.due) : [];
      if (due.length > 0) start(() => putOff(due));
    },
    gone(orderingKey, id) {
      const known = heads.get(orderingKey);
      if (known?.standing.delete(id)) known.gone.add(id);
    },
    keyFreed(orderingKey) {
      if ((heads.get(orderingKey)?.gone.size ?? 0) === 0) return;
      freed.add(orderingKey);
      start(bringBack);
    },
    release(all = false) {
      const result = looking.then(() => release(all));
      looking = result.catch(() => undefined);
      return result;
    },
    get returned() {
      return returned;
    },
    get isHeld() {
      return isHeld;
    },
    get still() {
      return running === undefined && freed.size === 0;
    },
    async idle() {
      while (running !== undefined) await running;
    },
  };
}
