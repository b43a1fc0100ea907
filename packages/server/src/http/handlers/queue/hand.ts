import type { HandReport } from "rowpost/queue";
import type { HandlersOf } from "../../call.ts";
import { decodeCursor, encodeCursor } from "../../cursor.ts";
import type { AnswerOf } from "../../routes.ts";
import { asked, audited, type QueueChange } from "./asked.ts";

type Names = "queueDead" | "queuePause" | "queueResume" | "queueSkip" | "queueRedeliver" | "queueDiscard" | "queueEdit";

interface HandCall extends Pick<QueueChange, "principal" | "source"> {
  readonly topic: string;
  readonly group: string;
  readonly body: { readonly reason: string };
}

export function queueHandHandlers(): HandlersOf<Names> {
  return {
    async queueDead({ group, query: { cursor, ...query }, source, topic }) {
      const { error, limit, state } = query;
      const about = { error, state, topic, group, source: source.name };
      const after = cursor === undefined ? undefined : decodeCursor(cursor, about).beforeId;
      const page = await asked(() => source.queue().deadLetters({ topic, group, error, state, limit, after }));
      return { json: { ...pageOf(page.letters), next: nextOf(page.next, about), asOf: new Date().toISOString() } };
    },

    async queuePause(call) {
      const { group, source, topic } = call;
      const change = changeOf(call, "queue pause", {});
      const changed = await audited(change, (by) => source.queue().pause({ topic, group, ...by }), toChanged);
      return { json: { changed } };
    },

    async queueResume(call) {
      const { group, source, topic } = call;
      const change = changeOf(call, "queue resume", {});
      const changed = await audited(change, () => source.queue().resume({ topic, group }), toChanged);
      return { json: { changed } };
    },

    async queueSkip(call) {
      const { group, source, topic } = call;
      const { id } = call.body;
      const change = changeOf(call, "queue skip", { id });
      await audited(
        change,
        (by) => source.queue().skip({ topic, group, id, ...by }),
        () => ({}),
      );
      return { json: { changed: true } };
    },

    async queueRedeliver(call) {
      const { body, group, source, topic } = call;
      const which = { ids: body.ids, all: body.all, error: body.error };
      const change = changeOf(call, "queue redeliver", which);
      const report = await audited(
        change,
        (by) => source.queue().redeliver({ topic, group, ...by, ...which }),
        toCount,
      );
      return { json: reportOf(report) };
    },

    async queueDiscard(call) {
      const { body, group, source, topic } = call;
      const which = { ids: body.ids, all: body.all, error: body.error };
      const change = changeOf(call, "queue discard", which);
      const report = await audited(change, (by) => source.queue().discard({ topic, group, ...by, ...which }), toCount);
      return { json: reportOf(report) };
    },

    async queueEdit(call) {
      const { body, group, source, topic } = call;
      const { id } = body;
      const edit = { body: body.body, jsonText: true };
      const change = changeOf(call, "queue edit", { id });
      const copy = await audited(
        change,
        async (by) => {
          const { contentType } = (await source.queue().message(topic, id)) ?? {};
          const isJson = contentType === undefined || /^application\/json\b/i.test(contentType);
          const as = isJson ? edit : { body: body.body, contentType };
          return await source.queue().editDeadLetter({ topic, group, id, change: as, ...by });
        },
        (made) => ({ copy: made }),
      );
      return { json: { copy } };
    },
  };
}

/** Ids are texts in the audit's details. */
function changeOf(
  { body, group, principal, source, topic }: HandCall,
  action: string,
  about: Readonly<Record<string, unknown>>,
): QueueChange {
  return { source, principal, action, reason: body.reason, about: { topic, group, ...about } };
}

function toChanged(changed: boolean): { readonly changed: boolean } {
  return { changed };
}

function toCount({ changed, conflicts }: HandReport): { readonly changed: number; readonly conflicts: number } {
  return { changed, conflicts: conflicts.length };
}

function reportOf({ changed, conflicts }: HandReport): AnswerOf<"queueDiscard"> {
  return { changed, conflicts: conflicts.map(({ id, state }) => ({ id, state })) };
}

function nextOf(next: string | undefined, about: unknown): string | null {
  return next === undefined ? null : encodeCursor({ place: "live", beforeId: next }, about);
}

type Letters = Awaited<ReturnType<ReturnType<HandCall["source"]["queue"]>["deadLetters"]>>["letters"];

/** Without the bodies, which lists never show. */
function pageOf(letters: Letters): Pick<AnswerOf<"queueDead">, "items"> {
  return {
    items: letters.map(({ attempt, error, id, message, nextAttemptAt, partition, since, state }) => ({
      id,
      partition,
      state,
      attempt,
      since,
      isThere: message !== undefined,
      error,
      nextAttemptAt,
      key: message?.key,
      type: message?.type,
    })),
  };
}
