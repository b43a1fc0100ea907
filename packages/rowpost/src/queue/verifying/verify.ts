/**
 * The detector: every message below a group's progress has a record in the round that it belongs
 * to, or is to come again, or was passed over by a rewind. What is none of these was lost.
 */
import { MOST_IN_A_RECORD, queueMonth } from "../../message/queue-id.ts";
import { refuseUnknown } from "../../runtime/check-options.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import type { RewindEntry, RewindStore } from "../rewinding/store.ts";
import { checkTopic } from "../topics/names.ts";
import type { VerifiedGroup, VerifiedMessage, VerifyStore } from "./store.ts";

/** Options of `queue.verify`. */
export interface VerifyOptions {
  /** The topic. */
  readonly topic: string;
  /** Default: every group. */
  readonly group?: string | undefined;
  /** `next` of the answer before. */
  readonly after?: VerifyPosition | undefined;
  /** After this long the answer is what was found so far. Default 10,000. */
  readonly timeLimitMs?: number | undefined;
}

/** How far a verification has come. */
export interface VerifyPosition {
  /** The consumer group. */
  readonly group: string;
  /** Partition of the topic, from 0. */
  readonly partition: number;
  /** The last message that was looked at. */
  readonly id: string;
}

/** Messages that a group has passed, and nobody knows why. */
export interface UnaccountedMessages {
  /** The consumer group. */
  readonly group: string;
  /** Partition of the topic, from 0. */
  readonly partition: number;
  /** The first of them; of a batch, the first that may be one. */
  readonly fromId: string;
  /** The last of them; of a batch, the last that may be one. */
  readonly toId: string;
  /** How many. */
  readonly messages: number;
}

/** What `queue.verify` found. */
export interface VerifyAnswer {
  /** What was found; one entry for a stretch of messages. */
  readonly problems: readonly UnaccountedMessages[];
  /** Messages that were looked at, for each group. */
  readonly messages: number;
  /** Everything was looked at. */
  readonly complete: boolean;
  /** Pass it as `after`, and it goes on there. */
  readonly next: VerifyPosition | undefined;
}

const CHUNK = 1_000;

export async function verifyQueue(
  store: VerifyStore,
  rewinds: Pick<RewindStore, "log">,
  options: VerifyOptions,
): Promise<VerifyAnswer> {
  refuseUnknown("verify", options, ["topic", "group", "after", "timeLimitMs"]);
  const { after, timeLimitMs = 10_000 } = options;
  if (!(Number.isInteger(timeLimitMs) && timeLimitMs >= 1)) {
    throw new ConfigurationError(`verify: timeLimitMs is ${timeLimitMs}; it must be a whole number of at least 1`);
  }
  const topic = checkTopic(options.topic);
  const untilMs = performance.now() + timeLimitMs;
  const problems: UnaccountedMessages[] = [];
  let messages = 0;
  for (const place of await placesOf(store, options)) {
    const { group, partition } = place;
    const log = (await rewinds.log({ topic, group }, 100_000)).filter((entry) => entry.partition === partition);
    // After the log: a rewind in between shows itself by its round, and is looked at the next time.
    const now = (await store.groups(topic)).find((each) => each.group === group && each.partition === partition);
    if (now === undefined || now.round !== (log[0]?.round ?? 0)) continue;
    const walk = walkOf(now, log, problems);
    const isHere = after?.group === group && after.partition === partition;
    let fromId = isHere ? String(BigInt(after.id) + 1n) : now.beginId;
    const lowest = log.reduce((least, { to }) => (compareIds(to, least) < 0 ? to : least), fromId);
    if (!isHere) fromId = lowest;
    const toId = String(BigInt(now.nextId) - 1n);
    for (const month of await store.months(topic)) {
      if (month < queueMonth(fromId) || BigInt(toId) < 0n || month > queueMonth(toId)) continue;
      const back = { topic, month, partition, fromId, places: MOST_IN_A_RECORD };
      let at = (await store.before(back)) ?? "0";
      for (;;) {
        const chunk = await store.chunk({ topic, group, month, partition, fromId: at, toId, limit: CHUNK });
        for (const message of chunk) {
          const counts = compareIds(message.id, fromId) >= 0;
          if (counts) messages += 1;
          walk.look(message, counts);
        }
        const last = chunk.at(-1)?.id;
        if (last === undefined || chunk.length < CHUNK) break;
        at = String(BigInt(last) + 1n);
        if (performance.now() >= untilMs && compareIds(last, fromId) >= 0) {
          walk.end();
          return { problems, messages, complete: false, next: { group, partition, id: last } };
        }
      }
      walk.closeBatches();
    }
    walk.end();
  }
  return { problems, messages, complete: true, next: undefined };
}

/** Groups and partitions, in order, from the position on. */
async function placesOf(store: VerifyStore, { topic, group, after }: VerifyOptions): Promise<VerifiedGroup[]> {
  const all = (await store.groups(topic)).filter((each) => group === undefined || each.group === group);
  all.sort((left, right) =>
    left.group < right.group ? -1 : left.group > right.group ? 1 : left.partition - right.partition,
  );
  if (after === undefined) return all;
  return all.filter(
    (each) => each.group > after.group || (each.group === after.group && each.partition >= after.partition),
  );
}

interface Walk {
  look(message: VerifiedMessage, counts: boolean): void;
  closeBatches(): void;
  end(): void;
}

interface Batch {
  readonly firstId: string;
  readonly lastId: string;
  readonly round: number;
  readonly messages: number;
  /** Messages between its ends that have nothing of their own. */
  plain: number;
  /** One of them belongs to a later round. */
  partly: boolean;
}

function walkOf(
  { group, partition, beginId }: VerifiedGroup,
  log: readonly RewindEntry[],
  problems: UnaccountedMessages[],
): Walk {
  let batches: Batch[] = [];
  let missing: { fromId: string; toId: string; messages: number } | undefined;

  /** The round that has to have a record of it; undefined: none has. The newest is first. */
  function roundOf(id: string): number | undefined {
    for (const { from, to, round } of log) {
      if (compareIds(id, to) >= 0) return round;
      if (compareIds(to, from) > 0 && compareIds(id, from) >= 0) return undefined;
    }
    return compareIds(id, beginId) >= 0 ? 0 : undefined;
  }

  function flush(): void {
    if (missing !== undefined) problems.push({ group, partition, ...missing });
    missing = undefined;
  }

  /** A batch that is about fewer messages than there are. */
  function close({ firstId, lastId, plain, messages, partly }: Batch): void {
    if (partly || plain <= messages) return;
    problems.push({ group, partition, fromId: firstId, toId: lastId, messages: plain - messages });
  }

  return {
    look({ id, records, again }, counts) {
      for (const batch of batches) if (compareIds(batch.lastId, id) < 0) close(batch);
      batches = batches.filter(({ lastId }) => compareIds(lastId, id) >= 0);
      for (const { round, batch } of records) {
        if (batch !== undefined) batches.push({ firstId: id, ...batch, round, plain: 0, partly: false });
      }
      const round = roundOf(id);
      const own = records.filter(({ batch }) => batch === undefined);
      let isKnown = round === undefined || again || own.some((record) => record.round >= round);
      for (const batch of batches) {
        if (again || own.some((record) => record.round >= batch.round)) continue;
        batch.plain += 1;
        if (round === undefined || batch.round < round) batch.partly = true;
        else isKnown = true;
      }
      if (isKnown || !counts) flush();
      else if (missing === undefined) missing = { fromId: id, toId: id, messages: 1 };
      else missing = { fromId: missing.fromId, toId: id, messages: missing.messages + 1 };
    },
    closeBatches() {
      for (const batch of batches) close(batch);
      batches = [];
    },
    end: flush,
  };
}
