/**
 * The detector: a message below a group's progress without a record in its round, a redelivery or a
 * rewind past it was lost.
 */
import { setImmediate } from "node:timers/promises";
import { checkQueueId, UnknownGroupError } from "../../message/queue-errors.ts";
import { MOST_IN_A_RECORD, queueMonth } from "../../message/queue-id.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { compareIds } from "../../runtime/compare-ids.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import { idAfter } from "../reading/reader.ts";
import type { RewindEntry } from "../rewinding/requests.ts";
import type { Rewinding } from "../rewinding/rewinding.ts";
import { checkGroup, checkTopic } from "../topics/names.ts";
import type { VerifiedGroup, VerifiedMessage, Verifying } from "./verifying.ts";

/** Options of `queue.verify`. */
export interface VerifyOptions {
  /** The topic. */
  readonly topic: string;
  /** Default: every group. */
  readonly group?: string | undefined;
  /** `next` of the previous answer. */
  readonly after?: VerifyPosition | undefined;
  /** Time limit in ms, after which the answer is what was found so far. Default 10,000. */
  readonly timeLimitMs?: number | undefined;
}

/** Position of a verification. */
export interface VerifyPosition {
  /** The consumer group. */
  readonly group: string;
  /** Partition of the topic, from 0. */
  readonly partition: number;
  /** The last message examined. */
  readonly id: string;
}

/** Messages that a group passed without a known reason. */
export interface UnaccountedMessages {
  /** The consumer group. */
  readonly group: string;
  /** Partition of the topic, from 0. */
  readonly partition: number;
  /** The first of them; of a batch, the first candidate. */
  readonly fromId: string;
  /** The last of them; of a batch, the last candidate. */
  readonly toId: string;
  /** Their number. */
  readonly messages: number;
}

/** Result of `queue.verify`. */
export interface VerifyAnswer {
  /** Problems, one entry per stretch of messages. */
  readonly problems: readonly UnaccountedMessages[];
  /** Messages examined, counted per group. */
  readonly messages: number;
  /** True when everything was examined. */
  readonly complete: boolean;
  /** Pass it as `after` to continue. */
  readonly next: VerifyPosition | undefined;
}

const CHUNK = 1_000;

export interface VerifyParts {
  readonly store: Verifying;
  readonly rewinds: Pick<Rewinding, "log">;
  /** Throws `UnknownTopicError`. */
  readonly requireTopic: (topic: string) => Promise<unknown>;
  readonly monotonicMs: () => number;
}

export async function verifyQueue(parts: VerifyParts, given: VerifyOptions): Promise<VerifyAnswer> {
  const options = checked(given);
  const { topic, after, timeLimitMs = 10_000 } = options;
  await parts.requireTopic(topic);
  const untilMs = parts.monotonicMs() + timeLimitMs;
  const isOver = (): boolean => parts.monotonicMs() >= untilMs;
  const problems: UnaccountedMessages[] = [];
  let messages = 0;
  let log: { readonly group: string; readonly entries: readonly RewindEntry[] } | undefined;
  const places = await placesOf(parts.store, options);
  for (const [index, place] of places.entries()) {
    const { group, partition } = place;
    if (log?.group !== group) log = { group, entries: await parts.rewinds.log({ topic, group }, 100_000) };
    const isHere = after?.group === group && after.partition === partition;
    const seen = await verifyPlace(parts.store, {
      topic,
      group,
      partition,
      problems,
      isOver,
      log: log.entries.filter((entry) => entry.partition === partition),
      afterId: isHere ? after.id : undefined,
    });
    messages += seen.messages;
    // It may find nothing left here, so it takes the next place too.
    const nextId = seen.stoppedAt ?? (isHere || index === places.length - 1 || !isOver() ? undefined : seen.endId);
    if (nextId === undefined) continue;
    return { problems, messages, complete: false, next: { group, partition, id: nextId } };
  }
  return { problems, messages, complete: true, next: undefined };
}

interface PlaceRequest {
  readonly topic: string;
  readonly group: string;
  readonly partition: number;
  /** Of this place, newest first. */
  readonly log: readonly RewindEntry[];
  readonly afterId: string | undefined;
  readonly problems: UnaccountedMessages[];
  readonly isOver: () => boolean;
}

interface PlaceSeen {
  readonly messages: number;
  /** More may follow. */
  readonly stoppedAt?: string;
  /** Last id to examine. */
  readonly endId: string;
}

async function verifyPlace(store: Verifying, request: PlaceRequest): Promise<PlaceSeen> {
  const { topic, group, partition, log, afterId, problems, isOver } = request;
  // After the log: a rewind in between shows in its round.
  const now = (await store.groups(topic)).find((each) => each.group === group && each.partition === partition);
  if (now === undefined || now.round !== (log[0]?.round ?? 0)) return { messages: 0, endId: afterId ?? "0" };
  const walk = walkOf(now, log, problems);
  const lowest = log.reduce((least, { to }) => (compareIds(to, least) < 0 ? to : least), now.beginId);
  const fromId = afterId === undefined ? lowest : idAfter(afterId);
  if (compareIds(fromId, now.nextId) >= 0) return { messages: 0, endId: afterId ?? "0" };
  const toId = String(BigInt(now.nextId) - 1n);
  const before = problems.length;
  let messages = 0;
  /** Rows set aside by a rewind meanwhile are examined next time. */
  const unlessRewound = async (): Promise<void> => {
    walk.end();
    if (problems.length === before) return;
    const then = (await store.groups(topic)).find((each) => each.group === group && each.partition === partition);
    if (then?.round !== now.round) problems.splice(before);
  };
  for (const month of await store.months(topic)) {
    if (month < queueMonth(fromId) || month > queueMonth(toId)) continue;
    let at = (await store.before({ topic, month, partition, fromId, places: MOST_IN_A_RECORD })) ?? "0";
    for (;;) {
      // SQLite answers within the call and would block all timers.
      await setImmediate();
      const chunk = await store.chunk({ topic, group, month, partition, fromId: at, toId, limit: CHUNK });
      for (const message of chunk) {
        const counts = compareIds(message.id, fromId) >= 0;
        if (counts) messages += 1;
        walk.look(message, counts);
      }
      const last = chunk.at(-1)?.id;
      if (last === undefined || chunk.length < CHUNK) break;
      at = idAfter(last);
      if (compareIds(last, fromId) >= 0 && isOver()) {
        await unlessRewound();
        return { messages, stoppedAt: last, endId: toId };
      }
    }
    walk.closeBatches();
  }
  await unlessRewound();
  return { messages, endId: toId };
}

const KINDS: OptionKinds<VerifyOptions> = { topic: "any", group: "any", after: "object", timeLimitMs: "number" };
const POSITION: OptionKinds<VerifyPosition> = { group: "any", partition: "number", id: "any" };

function checked(options: VerifyOptions): VerifyOptions {
  checkOptions("verify", options, KINDS);
  const { topic, group, after, timeLimitMs = 1 } = options;
  checkTopic(topic);
  if (group !== undefined) checkGroup(group);
  wholeNumber("verify: timeLimitMs", timeLimitMs, 1);
  if (after !== undefined) {
    checkOptions("verify: after", after, POSITION);
    checkGroup(after.group);
    checkQueueId("after.id", after.id);
    wholeNumber("verify: after.partition", after.partition, 0);
  }
  return options;
}

/** Ordered, from the position on. */
async function placesOf(store: Verifying, { topic, group, after }: VerifyOptions): Promise<VerifiedGroup[]> {
  const all = (await store.groups(topic)).filter((each) => group === undefined || each.group === group);
  if (group !== undefined && all.length === 0) throw new UnknownGroupError(topic, group);
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
  /** Without a record of their own. */
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

  /** The newest round that must have a record of it. */
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

  /** The batch covers fewer messages than exist. */
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
