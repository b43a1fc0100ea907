/** Reads a stream on a connection of its own, and claims what other members have left behind. */
import { onAbort, untilAborted } from "../../runtime/abort.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Underway } from "../underway.ts";
import { answered, type Connection, type Membership, type WireEntry } from "./connection.ts";
import type { RedisDelivered } from "./message.ts";

interface Parts extends Membership {
  readonly stream: string;
  /** Blocks in reads: nothing else is asked on it. */
  readonly reader: Connection;
  readonly commands: Connection;
  /** Entries of the stream that are under way, kept over connections. */
  readonly underway: Underway;
  readonly room: number;
  readonly claimAfterMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly closing: AbortSignal;
  /** Aborted when one of the connections has ended. */
  readonly ended: AbortSignal;
  /** Resolves when the entry is settled; undefined where it is under way already. */
  readonly take: (raw: RedisDelivered) => Promise<unknown> | undefined;
}

/** Between two looks for what others have left; so long a read waits, and a close for a read. */
const CLAIM_MS = 1_000;

/** Resolves at the close; rejects with why it cannot read. */
export async function readStream(parts: Parts): Promise<void> {
  const { clock, closing, ended, room, stream, underway } = parts;
  const isOver = (): boolean => closing.aborted || ended.aborted;

  function take([id, fields]: WireEntry): void {
    if (fields === null) {
      gone([id]);
      return;
    }
    const settled = parts.take({ stream, id: id.toString(), fields });
    if (settled !== undefined) underway.add(settled);
  }

  function gone(ids: readonly Buffer[]): void {
    if (ids.length === 0) return;
    const about = { stream, group: parts.group, ids: ids.map(String) };
    parts.logger.error("entries were trimmed before they were handled: they are lost", about);
  }

  let claimAtMs = clock.monotonicMs();
  let claimFrom = FIRST;

  /** Those of members that have died, and those that were given back, as many as have room. */
  async function claim(): Promise<void> {
    do {
      const words = [stream, parts.group, parts.member, parts.claimAfterMs, claimFrom, "COUNT", room - underway.size];
      const [next, entries, trimmed = []] = (await answered(parts.commands.xautoclaimBuffer(...words))) as Claimed;
      claimFrom = next.toString();
      for (const entry of entries) take(entry);
      gone(trimmed);
    } while (claimFrom !== FIRST && underway.size < room && !isOver());
    // Else it goes on from there as soon as there is room.
    if (claimFrom === FIRST) claimAtMs = clock.monotonicMs() + Math.min(CLAIM_MS, parts.claimAfterMs);
  }

  async function readNew(): Promise<void> {
    // 0 would be for ever.
    const blockMs = Math.max(1, Math.ceil(claimAtMs - clock.monotonicMs()));
    const words = ["GROUP", parts.group, parts.member, "COUNT", room - underway.size, "BLOCK", blockMs];
    const answer = await answered(parts.reader.xreadgroupBuffer(...words, "STREAMS", stream, ">"), blockMs);
    for (const entry of (answer as Answer)?.[0]?.[1] ?? []) take(entry);
  }

  const forget = [closing, ended].map((signal) => onAbort(signal, underway.wake));
  try {
    while (!isOver()) {
      if (underway.size >= room) await untilAborted(underway.change());
      // What was left is older than what nobody has read, which may never end.
      else if (clock.monotonicMs() >= claimAtMs) await claim();
      else await readNew();
    }
  } finally {
    for (const each of forget) each();
  }
}

/** Where a claim begins and, when it is through, ends. */
const FIRST = "0-0";

type Answer = readonly (readonly [stream: Buffer, entries: readonly WireEntry[]])[] | null;
type Claimed = readonly [next: Buffer, entries: readonly WireEntry[], trimmed?: readonly Buffer[]];
