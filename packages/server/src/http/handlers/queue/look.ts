import type { CountUpTo, GroupStatus, QueueMessageDetail, QueueMessageSummary } from "rowpost/queue";
import type { z } from "zod";
import { reaches } from "../../../access/topics.ts";
import { isMissingTable } from "../../../database-url.ts";
import { createShared, type Shared } from "../../../shared-answer.ts";
import type { Source } from "../../../source.ts";
import type { ConsoleParts, HandlersOf } from "../../call.ts";
import { decodeCursor, encodeCursor } from "../../cursor.ts";
import { Problem } from "../../problem.ts";
import type { queueSearchQuery } from "../../queue-schemas.ts";
import type { AnswerOf } from "../../routes.ts";
import { asked } from "./asked.ts";

type Names = "queueTopics" | "queueGroups" | "queueMessages" | "queueMessage" | "queueBody";
type Groups = AnswerOf<"queueGroups">;
type Search = z.output<typeof queueSearchQuery>;

const GROUPS_MS = 2_000;
const SHOWN_LENGTH = 262_144;

export function queueLookHandlers({ sources }: ConsoleParts): HandlersOf<Names> {
  const shared = new Map(sources.map((source) => [source.name, new Map<string, Shared<Groups>>()]));

  /** Counted once for all viewers of a topic. */
  async function groupsOf(source: Source, topic: string): Promise<Groups> {
    const topics = shared.get(source.name) ?? new Map<string, Shared<Groups>>();
    const answer = topics.get(topic) ?? createShared(GROUPS_MS, () => countedGroups(source, topic));
    topics.set(topic, answer);
    try {
      return await answer();
    } catch (error) {
      // Unknown names must not pile up.
      topics.delete(topic);
      throw error;
    }
  }

  return {
    async queueTopics({ principal: { topics }, source }) {
      const asOf = new Date().toISOString();
      try {
        const items = (await source.queue().topics()).filter(({ topic }) => reaches(topics, topic));
        return { json: { tables: true, items, asOf } };
      } catch (error) {
        if (isMissingTable(error)) return { json: { tables: false, items: [], asOf } };
        throw error;
      }
    },

    queueGroups: async ({ source, topic }) => ({ json: await groupsOf(source, topic) }),
    queueMessages: async ({ query, source, topic }) => ({ json: await found(source, topic, query) }),

    async queueMessage({ id, source, topic }) {
      const detail = await shown(source, topic, id);
      return { json: { ...detailOf(detail), asOf: new Date().toISOString() } };
    },

    async queueBody({ id, principal, source, topic }) {
      const { bodyText, contentType, headers, problem } = await shown(source, topic, id);
      await source.operations.record({
        author: principal.name,
        via: principal.via,
        action: "queue body",
        reason: "looked at",
        result: "done",
        details: { topic, id },
      });
      // Does not cut a surrogate pair.
      const body = bodyText.slice(0, SHOWN_LENGTH).replace(/[\ud800-\udbff]$/, "");
      const cut = { truncated: body.length < bodyText.length, length: bodyText.length };
      return { json: { body, ...cut, ...given({ contentType, headers, problem }) } };
    },
  };
}

function countOf({ atLeast, count }: CountUpTo): { readonly value: number; readonly relation: "eq" | "gte" } {
  return { value: count, relation: atLeast ? "gte" : "eq" };
}

/** Removes undefined fields, which an answer never has. */
function given<T extends object>(fields: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]: Exclude<T[Name], undefined>;
  };
}

async function countedGroups(source: Source, topic: string): Promise<Groups> {
  const asOf = new Date().toISOString();
  const groups = await asked(() => source.queue().groups({ topic }));
  return { items: groups.map(groupOf), asOf };
}

function groupOf({ dead, group, lag, lagMs, partitions, paused, waiting }: GroupStatus): Groups["items"][number] {
  return {
    ...given({ group, paused }),
    lag: countOf(lag),
    lagMs,
    waiting: countOf(waiting),
    dead: countOf(dead),
    partitions: partitions.map(({ head, member, movedMsAgo, oldestWaiting, ...each }) => ({
      partition: each.partition,
      nextId: each.nextId,
      lagMs: each.lagMs,
      lag: countOf(each.lag),
      waiting: countOf(each.waiting),
      dead: countOf(each.dead),
      ...given({
        movedMsAgo,
        head: head && given(head),
        member: member && given(member),
        oldestWaiting: oldestWaiting && given(oldestWaiting),
      }),
    })),
  };
}

async function found(source: Source, topic: string, query: Search): Promise<AnswerOf<"queueMessages">> {
  const { budgetMs: timeLimitMs, cursor, header, limit, ...rest } = query;
  const about = { ...rest, header, topic, source: source.name, queue: true };
  const before = cursor === undefined ? undefined : decodeCursor(cursor, about).beforeId;
  const { key, id, type, after, before: sentBefore } = rest;
  const answer = await asked(() =>
    source.queue().search({
      topic,
      key,
      id,
      type,
      before,
      limit,
      timeLimitMs,
      header: header === undefined ? undefined : headerOf(header),
      from: after === undefined ? undefined : new Date(after),
      to: sentBefore === undefined ? undefined : new Date(sentBefore),
    }),
  );
  const { absentMonths, complete, droppedMonths, messages, months, next, rows, stopped } = answer;
  return {
    items: messages.map(messageOf),
    next: next === undefined ? null : encodeCursor({ place: "live", beforeId: next }, about),
    searched: {
      complete,
      rows,
      months: [...months],
      absentMonths: [...absentMonths],
      stopped: stopped === "time" ? "budget" : stopped,
      droppedMonths: droppedMonths.map(({ archive, author, droppedAt, month, reason }) => ({
        archive,
        author,
        droppedAt,
        month,
        reason,
      })),
    },
    asOf: new Date().toISOString(),
  };
}

function headerOf(text: string): { readonly name: string; readonly value: string } {
  const at = text.indexOf("=");
  return { name: text.slice(0, at), value: text.slice(at + 1) };
}

async function shown(source: Source, topic: string, id: string): Promise<QueueMessageDetail> {
  const detail = await asked(() => source.queue().message(topic, id));
  if (detail === undefined) throw new Problem("not-found", `topic ${topic} has no message ${id}`);
  return detail;
}

function messageOf(message: QueueMessageSummary): AnswerOf<"queueMessages">["items"][number] {
  const { contentType, deliverAt, id, key, orderingKey, partition, producer, sentAt, type } = message;
  return {
    ...given({ id, partition, key, type, contentType, orderingKey }),
    sentAt: sentAt.toISOString(),
    deliverAt: deliverAt?.toISOString() ?? null,
    producer: given(producer),
  };
}

function detailOf(detail: QueueMessageDetail): Omit<AnswerOf<"queueMessage">, "asOf"> {
  return {
    message: messageOf(detail),
    groups: detail.groups.map(({ attempts, failReason, group, nextAttemptAt, state }) =>
      given({ group, state, attempts, failReason, nextAttemptAt: nextAttemptAt?.toISOString() }),
    ),
    attempts: detail.attempts.map(({ at, batch, error, ip, port, ...entry }) => ({
      group: entry.group,
      round: entry.round,
      attempt: entry.attempt,
      result: entry.result,
      at: at.toISOString(),
      durationMs: entry.durationMs,
      instance: entry.instance,
      ...given({ error, ip, port, batch: batch?.messages }),
    })),
  };
}
