/** Reads a stream on its own connection, and claims entries that other members left. */
import { onAbort, untilAborted } from "../../runtime/abort.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Underway } from "../underway.ts";
import { answered, type Connection, type Membership, type WireEntry } from "./connection.ts";
import { NOBODY } from "./entries.ts";
import type { RedisDelivered } from "./message.ts";

interface Parts extends Membership {
  readonly stream: string;
  /** Blocks in reads, so it is used for nothing else. */
  readonly reader: Connection;
  readonly commands: Connection;
  readonly underway: Underway;
  readonly claimAfterMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly closing: AbortSignal;
  readonly ended: AbortSignal;
  /** Resolves when the entry is settled; undefined if it is under way already. */
  readonly take: (raw: RedisDelivered) => Promise<unknown> | undefined;
}

/** Interval of claims; also how long a read blocks, and so how long a close waits for it. */
const CLAIM_MS = 1_000;

const FORGET_MS = 60_000;
/**
 * Removes the names of dead members from the group. A script, because an entry that a member took
 * between a check and its removal would be lost with it. A live member reads every second; one
 * removed by mistake gets its name back with its next read.
 */
const FORGET_DEAD = `
for _, facts in ipairs(redis.call("XINFO", "CONSUMERS", KEYS[1], ARGV[1])) do
  local member = {}
  for at = 1, #facts, 2 do member[facts[at]] = facts[at + 1] end
  local isOurs = string.sub(member.name, 1, 8) == "rowpost-" and member.name ~= "${NOBODY}"
  if isOurs and member.pending == 0 and member.idle > tonumber(ARGV[2]) then
    redis.call("XGROUP", "DELCONSUMER", KEYS[1], ARGV[1], member.name)
  end
end`;

/** Resolves at the close; rejects with the reason if it cannot read. */
export async function readStream(parts: Parts): Promise<void> {
  const { clock, closing, ended, stream, underway } = parts;
  const isOver = (): boolean => closing.aborted || ended.aborted;

  function take([id, fields]: WireEntry): void {
    if (fields === null) {
      gone([id]);
      return;
    }
    const settled = parts.take({ stream, id: id.toString(), fields });
    if (settled !== undefined)
      underway.add(
        settled,
        fields.reduce((sum, each) => sum + each.length, 0),
      );
  }

  function gone(ids: readonly Buffer[]): void {
    if (ids.length === 0) return;
    const about = { stream, group: parts.group, ids: ids.map(String) };
    parts.logger.error("entries were trimmed before they were handled: they are lost", about);
  }

  let claimAtMs = clock.monotonicMs();
  let claimFrom = FIRST;
  let forgetAtMs = clock.monotonicMs();

  /** Claims entries of dead members and returned ones, as many as have room. */
  async function claim(): Promise<void> {
    do {
      const words = [stream, parts.group, parts.member, parts.claimAfterMs, claimFrom, "COUNT", underway.room];
      const [next, entries, trimmed = []] = (await answered(parts.commands.xautoclaimBuffer(...words))) as Claimed;
      claimFrom = next.toString();
      for (const entry of entries) take(entry);
      gone(trimmed);
    } while (claimFrom !== FIRST && underway.room > 0 && !isOver());
    // Otherwise it continues from there as soon as there is room.
    if (claimFrom !== FIRST) return;
    const nowMs = clock.monotonicMs();
    claimAtMs = nowMs + Math.min(CLAIM_MS, parts.claimAfterMs);
    if (nowMs < forgetAtMs) return;
    forgetAtMs = nowMs + FORGET_MS;
    // If scripts are forbidden the names stay, which is harmless.
    await answered(parts.commands.eval(FORGET_DEAD, 1, stream, parts.group, 3 * CLAIM_MS)).catch(() => undefined);
  }

  async function readNew(): Promise<void> {
    // 0 would block for ever.
    const blockMs = Math.max(1, Math.ceil(claimAtMs - clock.monotonicMs()));
    const words = ["GROUP", parts.group, parts.member, "COUNT", underway.room, "BLOCK", blockMs];
    const answer = await answered(parts.reader.xreadgroupBuffer(...words, "STREAMS", stream, ">"), blockMs);
    for (const entry of (answer as Answer)?.[0]?.[1] ?? []) take(entry);
  }

  const forget = [closing, ended].map((signal) => onAbort(signal, underway.wake));
  try {
    while (!isOver()) {
      if (underway.room === 0) await untilAborted(underway.change());
      // Left entries are older than unread ones, which may never end.
      else if (clock.monotonicMs() >= claimAtMs) await claim();
      else await readNew();
    }
  } finally {
    for (const each of forget) each();
  }
}

const FIRST = "0-0";

type Answer = readonly (readonly [stream: Buffer, entries: readonly WireEntry[]])[] | null;
type Claimed = readonly [next: Buffer, entries: readonly WireEntry[], trimmed?: readonly Buffer[]];
