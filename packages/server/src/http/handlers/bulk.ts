/** Changes that mean many messages: rules, a topic's backoff, and bulk operations on a preview. */
import type { BulkKind, BulkOperation, MessageFilter, OperatorAction } from "rowpost";
import type { z } from "zod";
import type { Principal } from "../../access/principal.ts";
import { reaches, type Topics } from "../../access/topics.ts";
import { failuresOf } from "../../operations/failure-groups.ts";
import type { Source } from "../../source.ts";
import type { operation as operationSchema, previewBody } from "../bulk-schemas.ts";
import type { HandlersOf } from "../call.ts";
import { msUntil } from "../instants.ts";
import { Problem } from "../problem.ts";
import { mayDo } from "../route.ts";
import { isOwn, requireTopic } from "../topic-limits.ts";

type Handled =
  | ("suspendScope" | "resumeScope" | "resetBackoff" | "preview" | "startOperation" | "operations" | "operation")
  | ("pauseOperation" | "resumeOperation" | "cancelOperation");

const PREVIEW_MS = 600_000;
const SHOWN_CONFLICTS = 200;
const FOR_ADMINS: readonly BulkKind[] = ["resend", "archive", "delete"];

/** Makes them. */
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

    async preview({ body: { filter, fingerprint, kind }, principal, source }) {
      checkKind(kind, principal);
      if (fingerprint === undefined) requireTopic(principal.topics, filter.topic);
      const { seen, ...meant } = await meantBy(source, { filter, fingerprint, kind }, principal.topics);
      const made = await source.bulk.preview({ kind, author: principal.name, filter: meant.filter, seen });
      const samples = made.samples.map((message) => ({ ...message }));
      return { json: { operation: shown(made.operation), samples, expiresInMs: PREVIEW_MS } };
    },

    async startOperation({ body: { preview, rate, reason, until }, principal, source }) {
      const planned = await source.bulk.read(preview);
      if (planned !== undefined) {
        checkKind(planned.kind, principal);
        requireTopic(principal.topics, planned.filter.topic);
      }
      const untilMs = msUntil(until);
      const started = await source.bulk.start({ id: preview, action: actionOf(principal, reason), rate, untilMs });
      if (started === undefined)
        throw new Problem("preview-expired", "make the preview again: it is older than ten minutes, or not yours");
      source.wakeWorker();
      return { json: { operation: shown(started) } };
    },

    async operations({ principal, source }) {
      const own = (await source.bulk.list()).filter((each) => isOwn(each, principal.topics));
      return { json: { items: own.map(shown), asOf: new Date().toISOString() } };
    },

    async operation({ operation: id, source }) {
      const conflicts = await source.bulk.conflicts({ id, afterId: "0", limit: SHOWN_CONFLICTS });
      const asOf = new Date().toISOString();
      return { json: { operation: shown(await known(source, id)), conflicts: [...conflicts], asOf } };
    },

    pauseOperation: (call) => move("paused", call),
    resumeOperation: (call) => move("running", call),
    cancelOperation: (call) => move("cancelled", call),
  };
}

interface MoveCall {
  readonly operation: string;
  readonly body: { readonly reason: string };
  readonly principal: Principal;
  readonly source: Source;
}

async function move(
  to: "paused" | "running" | "cancelled",
  { body, operation: id, principal, source }: MoveCall,
): Promise<{ readonly json: { readonly operation: z.infer<typeof operationSchema> } }> {
  checkKind((await known(source, id)).kind, principal);
  const isMoved = await source.bulk.move({ id, to, action: actionOf(principal, body.reason) });
  const operation = await known(source, id);
  if (!isMoved) throw new Problem("state-conflict", `operation ${id} is ${operation.state}`, { more: { operation } });
  source.wakeWorker();
  return { json: { operation: shown(operation) } };
}

/** Throws a {@link Problem} when there is none; a preview is nobody's business but its author's. */
async function known(source: Source, id: string): Promise<BulkOperation> {
  const operation = await source.bulk.read(id);
  if (operation === undefined || operation.state === "preview")
    throw new Problem("not-found", `there is no operation ${id}`);
  return operation;
}

function checkKind(kind: BulkKind, { role }: Principal): void {
  if (!FOR_ADMINS.includes(kind) || mayDo(role, "admin")) return;
  throw new Problem("forbidden", `${kind} needs the role admin, and you have ${role}`, {
    more: { role, needed: "admin" },
  });
}

/** A cause is a list of messages: no filter says what its pattern does. */
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

function shown({ filter, planned, total, ...operation }: BulkOperation): z.infer<typeof operationSchema> {
  return { ...operation, filter: { ...filter }, total: { value: total, relation: planned ? "eq" : "gte" } };
}
