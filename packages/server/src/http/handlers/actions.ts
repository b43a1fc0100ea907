import { DuplicateMessageError, InvalidMessageError } from "rowpost";
import type { ChangeReport, ChangeTarget, MessageAdmin, MessageSummary, OperatorAction } from "rowpost/admin";
import type { Principal } from "../../access/principal.ts";
import type { Source } from "../../source.ts";
import type { Call, HandlersOf, Reply } from "../call.ts";
import { versionOf, versionTag } from "../etag.ts";
import { msUntil } from "../instants.ts";
import { Problem } from "../problem.ts";
import { requireTopic } from "../topic-limits.ts";
import { summaryOf } from "./messages.ts";

type ActionName = "retry" | "resend" | "suspend" | "resume" | "confirm" | "archive" | "copy";

interface ChangeCall {
  readonly id: string;
  readonly source: Source;
  readonly principal: Principal;
  readonly request: Request;
  readonly body: { readonly reason: string };
}

type Change = (admin: MessageAdmin, target: ChangeTarget) => Promise<ChangeReport>;

export function actionHandlers(): HandlersOf<ActionName> {
  return {
    retry: (call) => change("retry", call, (admin, target) => admin.retry({ ...target, now: call.body.now })),
    resend: (call) => change("resend", call, (admin, target) => admin.retry({ ...target, resend: true })),
    suspend: (call) =>
      change("suspend", call, (admin, target) => {
        const untilMs = msUntil(call.body.until);
        return admin.suspend(untilMs === undefined ? target : { ...target, untilMs });
      }),
    resume: (call) => change("resume", call, (admin, target) => admin.resume(target)),
    confirm: (call) => change("confirm", call, (admin, target) => admin.confirm(target)),
    archive: (call) => change("archive", call, (admin, target) => admin.remove({ ...target, mode: "archive" })),
    copy,
  };
}

/** Locks the row and compares its version: of two concurrent changes the later one is refused. */
async function change(
  what: ActionName,
  { body, id, principal, request, source }: ChangeCall,
  make: Change,
): Promise<{ readonly json: { readonly message: MessageSummary }; readonly headers: { readonly etag: string } }> {
  const { lockVersion, ...attempt } = await attemptOf(what, { body, id, principal, request, source });
  const { action } = attempt;
  const report = await make(source.changes, { filter: {}, seen: [{ id, lockVersion }], action, limit: 1 });
  if (report.changed === 0) return await refused(what, source, attempt);
  const message = await summaryOf(source, id);
  return { json: { message: { ...message } }, headers: { etag: versionTag(message) } };
}

async function copy(call: Call<"copy">): Promise<Reply<"copy">> {
  const { body, id, source } = call;
  const { key, topic, body: text, headers, original } = body;
  if (topic !== undefined) requireTopic(call.principal.topics, topic);
  const { lockVersion, ...attempt } = await attemptOf("copy", call);
  const { action } = attempt;
  const change = { key, topic, body: text, headers };
  const { copyId } = await source.changes
    .copy({ seen: { id, lockVersion }, change, original, action })
    .catch((error: unknown) => {
      throw refusalOf(error) ?? error;
    });
  if (copyId === undefined) return await refused("copy", source, attempt);
  const [message, left] = [await summaryOf(source, copyId), await summaryOf(source, id)];
  return { json: { message: { ...message }, original: { ...left } }, headers: { etag: versionTag(message) } };
}

function refusalOf(error: unknown): Problem | undefined {
  if (error instanceof InvalidMessageError) return new Problem("invalid-request", error.message);
  if (!(error instanceof DuplicateMessageError)) return undefined;
  const errors = [{ pointer: "/key", message: "is the key of another message of this type" }];
  return new Problem("invalid-request", `key: ${errors[0]?.message}`, { more: { errors } });
}

async function attemptOf(
  what: ActionName,
  { body, id, principal, request, source }: ChangeCall,
): Promise<Attempt & { readonly lockVersion: string }> {
  const version = versionOf(request.headers.get("if-match"));
  const action: OperatorAction = { author: principal.name, reason: body.reason.trim(), via: principal.via };
  const hasVersions = source.layout.columns.lockVersion !== undefined;
  if (!hasVersions) await compareState(what, source, { id, version, action });
  return { id, version, action, lockVersion: seenVersion(version, hasVersions) };
}

function seenVersion(version: string, hasVersions: boolean): string {
  if (!hasVersions) return "0";
  if (/^-?\d{1,19}$/.test(version)) return version;
  throw new Problem("invalid-request", "If-Match is no ETag of a message of this table");
}

interface Attempt {
  readonly id: string;
  readonly version: string;
  readonly action: OperatorAction;
}

/** Without a version only the state can be compared. */
async function compareState(what: ActionName, source: Source, attempt: Attempt): Promise<void> {
  const { state } = await summaryOf(source, attempt.id);
  if (state !== attempt.version) await refused(what, source, attempt);
}

/** Reports why nothing was changed, with the current row, and audits it. */
async function refused(what: ActionName, source: Source, { action, id, version }: Attempt): Promise<never> {
  const current = await summaryOf(source, id);
  await source.operations.record({
    author: action.author,
    via: action.via ?? "console",
    action: what,
    reason: action.reason,
    result: "conflict",
    details: { id, seen: version, state: current.state, version: current.lockVersion },
  });
  const headers = { etag: versionTag(current) };
  if (versionTag(current) !== `"${version}"` || current.archived)
    throw new Problem("precondition-failed", `message ${id} has changed since: it is ${current.state}`, {
      more: { current },
      headers,
    });
  throw new Problem("state-conflict", `message ${id} is ${current.state}, which forbids ${what}`, {
    more: { current },
    headers,
  });
}
