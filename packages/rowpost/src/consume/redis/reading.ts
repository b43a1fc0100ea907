/** Reads a stream on a connection of its own, and claims what other members have left behind. */
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { answered, type Connection, type Membership, type WireEntry } from "./connection.ts";
import type { RedisDelivered } from "./message.ts";

interface Parts extends Membership {
  readonly stream: string;
  /** Blocks in reads: nothing else is asked on it. */
  readonly reader: Connection;
  readonly commands: Connection;
  /** Entries of the stream that are under way, kept over connections. */
  readonly underway: Set<Promise<unknown>>;
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

/** How long a read waits for entries, and a close for a read. */
const BLOCK_MS = 1_000;
/** Between two looks for what others have left. */
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
    if (settled === undefined) return;
    underway.add(settled);
    void settled.then(() => underway.delete(settled));
  }

  function gone(ids: readonly Buffer[]): void {
    if (ids.length === 0) return;
    const about = { stream, group: parts.group, ids: ids.map(String) };
    parts.logger.error("entries were trimmed before they were handled: they are lost", about);
  }

  /** Those of members that have died, and those that were given back. */
  async function claim(): Promise<void> {
    let from = "0-0";
    do {
      const count = room - underway.size;
      if (count <= 0) return;
      const words = [stream, parts.group, parts.member, parts.claimAfterMs, from, "COUNT", count];
      const [next, entries, trimmed = []] = (await answered(parts.commands.xautoclaimBuffer(...words))) as Claimed;
      from = next.toString();
      for (const entry of entries) take(entry);
      gone(trimmed);
    } while (from !== "0-0" && !isOver());
  }

  async function read(): Promise<void> {
    while (!isOver()) {
      if (underway.size >= room) {
        await Promise.race([...underway, clock.sleep(BLOCK_MS, closing)]);
        continue;
      }
      const words = ["GROUP", parts.group, parts.member, "COUNT", room - underway.size, "BLOCK", BLOCK_MS];
      const answer = await answered(parts.reader.xreadgroupBuffer(...words, "STREAMS", stream, ">"), BLOCK_MS);
      for (const entry of (answer as Answer)?.[0]?.[1] ?? []) take(entry);
    }
  }

  async function keepClaiming(): Promise<void> {
    for (;;) {
      await clock.sleep(Math.min(CLAIM_MS, parts.claimAfterMs), closing);
      if (isOver()) return;
      await claim();
    }
  }

  // What was given back is older than what nobody has read.
  await claim();
  await Promise.all([read(), keepClaiming()]);
}

type Answer = readonly (readonly [stream: Buffer, entries: readonly WireEntry[]])[] | null;
type Claimed = readonly [next: Buffer, entries: readonly WireEntry[], trimmed?: readonly Buffer[]];
