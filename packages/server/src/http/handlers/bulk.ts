/** Changes of many messages: rules, a topic's backoff, and previewed changes. */
import type { ChangeKind, MessageFilter, OperatorAction } from "rowpost/admin";
import type { z } from "zod";
import type { Principal } from "../../access/principal.ts";
import { reaches, type Topics } from "../../access/topics.ts";
import { failuresOf } from "../../operations/failure-groups.ts";
import { type Operation, PREVIEW_MS } from "../../operations/operations.ts";
import type { Source } from "../../source.ts";
import type { operation as operationSchema, previewBody } from "../bulk-schemas.ts";
import type { HandlersOf } from "../call.ts";
import { msUntil } from "../instants.ts";
import { Problem } from "../problem.ts";
import { mayDo } from "../route.ts";
import { isOwn, requireTopic } from "../topic-limits.ts";

type Handled =
  | ("suspendScope" | "resumeScope" | "resetBackoff")
  | ("preview" | "startOperation" | "operations" | "operation" | "cancelOperation");

const SHOWN_CONFLICTS = 200;
const FOR_ADMINS: readonly ChangeKind[] = ["resend", "archive", "delete"];

export function bulkHandlers(): HandlersOf<Handled> {
  return {
    async suspendScope({ body: { scope, until, value, ...given }, principal, source }) {
      requireTopic(principal.topics, scope === "topic" ? value : undefined);
      const action = actionOf(principal, given.reason);
      await source.changes.suspendScope({ ...action, scope, value, endsInMs: msUntil(until) ?? null });
      return { json: { changed: 0 } };
    },

    async resumeScope({ body: { reason, scope, value }, principal, source }) {
      requireTopic(principal.topics, scope === "topic" ? value : undefined);
      const action = actionOf(principal, reason);
      return { json: { changed: await source.changes.resumeScope({ scope, value, action }) } };
    },

    async resetBackoff({ body: { reason, topic }, principal, source }) {
      requireTopic(principal.topics, topic);
      return { json: { changed: await source.changes.resetBackoff({ topic, action: actionOf(principal, reason) }) } };
    },

    async preview({ body: { afterId, filter, fingerprint, kind }, principal, source }) {
      checkKind(kind, principal);
      if (fingerprint === undefined) requireTopic(principal.topics, filter.topic);
      const meant = await meantBy(source, { filter, fingerprint, kind }, principal.topics);
      const { operation, samples } = await source.bulk.preview({ kind, author: principal.name, afterId, ...meant });
      const shownSamples = samples.map((message) => ({ ...message }));
      return { json: { operation: shown(operation), samples: shownSamples, expiresInMs: PREVIEW_MS } };
    },

    async startOperation({ body: { preview, reason, until }, principal, source }) {
      const planned = source.bulk.read(preview);
      if (planned !== undefined) {
        checkKind(planned.kind, principal);
        requireTopic(principal.topics, planned.filter.topic);
      }
      const untilMs = msUntil(until);
      const started = source.bulk.start({ id: preview, action: actionOf(principal, reason), untilMs });
      if (started === undefined)
        throw new Problem(
          "preview-expired",
          "make the preview again: it is older than ten minutes, not yours, or was made in another process of the console",
        );
      return { json: { operation: shown(started) } };
    },

    async operations({ principal, source }) {
      const own = source.bulk.list().filter((each) => isOwn(each, principal.topics));
      return { json: { items: own.map(shown), asOf: new Date().toISOString() } };
    },

    async operation({ operation: id, source }) {
      const operation = known(source, id);
      const conflicts = operation.conflicts.slice(0, SHOWN_CONFLICTS).map(({ id, state }) => ({ id, state }));
      return { json: { operation: shown(operation), conflicts, asOf: new Date().toISOString() } };
    },

    async cancelOperation({ body: { reason }, operation: id, principal, source }) {
      checkKind(known(source, id).kind, principal);
      const ending = source.bulk.cancel(id);
      if (ending === undefined) {
        const operation = shown(known(source, id));
        throw new Problem("state-conflict", `operation ${id} is ${operation.state}`, { more: { operation } });
      }
      const { via = "console", ...who } = actionOf(principal, reason);
      const about = { action: "operation cancel", result: "done", details: { operation: id } } as const;
      await source.operations.record({ ...who, ...about, via });
      await ending;
      return { json: { operation: shown(known(source, id)) } };
    },
  };
}

/**
 * Throws a {@link Problem} when this process has none; a preview is nobody's business but its
 * author's.
 */
function known(source: Source, id: string): Operation {
  const operation = source.bulk.read(id);
  if (operation !== undefined && operation.state !== "preview") return operation;
  throw new Problem(
    "not-found",
    `this process of the console has no operation ${id}: another one may have it, and the audit has its begin and end`,
  );
}

function checkKind(kind: ChangeKind, { role }: Principal): void {
  if (!FOR_ADMINS.includes(kind) || mayDo(role, "admin")) return;
  throw new Problem("forbidden", `${kind} needs the role admin, and you have ${role}`, {
    more: { role, needed: "admin" },
  });
}

/** A cause is a list of messages, since no filter expresses its pattern. */
async function meantBy(
  source: Source,
  { filter: { after, before, reason, ...given }, fingerprint, kind }: z.output<typeof previewBody>,
  topics: Topics,
): Promise<{ readonly filter: MessageFilter; readonly seen?: Awaited<ReturnType<typeof failuresOf>>["seen"] }> {
  if (fingerprint !== undefined) {
    if (kind === "resume" || kind === "resend")
      throw new Problem("invalid-request", `${kind} means no failed messages, which a cause has`);
    const isMeant = ({ topic }: { readonly topic: string }): boolean => reaches(topics, topic);
    const { seen, topic } = await source.search((admin) => failuresOf(admin, fingerprint, isMeant));
    return { filter: { states: ["failed"], ...(topic === undefined ? {} : { topic }) }, seen };
  }
  const all = { ...given, failReasonContains: reason, createdAfter: after, createdBefore: before };
  return { filter: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) };
}

function actionOf({ name, via }: Principal, reason: string): OperatorAction {
  return { author: name, reason: reason.trim(), via };
}

function shown({ conflicts: _conflicts, filter, ...operation }: Operation): z.infer<typeof operationSchema> {
  return { ...operation, filter: { ...filter } };
}
