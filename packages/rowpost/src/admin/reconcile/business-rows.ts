/** Compares business rows with messages, one slice in one snapshot of the database. */
import { ConfigurationError } from "../../runtime/errors.ts";
import { createFinding, type Finding } from "./finding.ts";
import type { Settings } from "./options.ts";
import { inSlices, TooMuchError } from "./slices.ts";
import type { Identity, ReconcileView, UserQuery, Window, WrittenMessage } from "./store.ts";

/** Most rows, or messages without one, of a slice: about 20 MB. */
const MOST = 100_000;

/** Later business rows still have their messages, if they ever had. Infinity: known of none. */
export async function comparableSince(
  view: Pick<ReconcileView, "keptSince">,
  { keptForMs, slackMs }: Pick<Settings, "keptForMs" | "slackMs">,
  nowMs: number,
): Promise<number> {
  const keptSinceMs = keptForMs === undefined ? await view.keptSince() : nowMs - keptForMs;
  return (keptSinceMs ?? Number.POSITIVE_INFINITY) + slackMs;
}

export interface SliceResult {
  readonly findings: readonly Finding[];
  readonly businessRows: number;
  readonly messages: number;
  readonly withoutKey: number;
  /** Not reported, because retention may have deleted their messages. */
  readonly undecided: number;
}

interface SliceRequest {
  readonly settings: Settings;
  readonly query: UserQuery | undefined;
  /** The query names the window. */
  readonly isWindowed: boolean;
  readonly slice: Window;
  /** Has all rows of a query that does not name the window. */
  readonly isFirst: boolean;
  readonly nowMs: number;
  readonly mayFail: boolean;
}

interface Found {
  readonly findings: Finding[];
  /** The business rows; undefined: not compared. */
  readonly named: ReadonlySet<string> | undefined;
  /** Those whose message has not been seen. */
  readonly left: Map<string, Identity>;
  /** Messages without a business row in the slice. */
  readonly alone: WrittenMessage[];
  messages: number;
}

/**
 * Throws `TooMuchError` when a shorter slice is needed, and `ConfigurationError` when there is
 * none.
 */
export async function compareSlice(view: ReconcileView, request: SliceRequest): Promise<SliceResult> {
  const { isFirst, isWindowed, query, settings, slice } = request;
  const rows = query === undefined ? undefined : await view.rows(query, slice, MOST);
  if (rows?.more === true) throw tooMuch(request);
  const isNew = isWindowed || isFirst;
  const found: Found = {
    named: rows === undefined ? undefined : new Set(rows.identities.map(nameOf)),
    left: new Map(isNew ? rows?.identities.map((each) => [nameOf(each), each]) : []),
    findings: [],
    alone: [],
    messages: 0,
  };
  await view.messages(slice, settings.types, (batch) => look(found, batch, request));
  // The others may have been created at any time.
  const missing = await view.missing([...found.left.values()]);
  // In the same snapshot, since retention keeps deleting. Rows of a query that does not name the
  // window may have any age.
  const isKept = (isWindowed ? slice.fromMs : 0) >= (await comparableSince(view, settings, request.nowMs));
  if (isKept) for (const each of missing) found.findings.push(createFinding("no-message", each));
  for (const message of await withoutRow(view, found.alone, request)) {
    const { createdMs: atMs, id } = message;
    found.findings.push(createFinding("no-business-row", message, { id, atMs }));
  }
  return {
    findings: found.findings,
    messages: found.messages,
    businessRows: isNew ? (rows?.identities.length ?? 0) : 0,
    withoutKey: isNew ? (rows?.withoutKey ?? 0) : 0,
    undecided: isKept ? 0 : missing.length,
  };
}

function tooMuch({ isWindowed, mayFail, query }: SliceRequest): Error {
  if (mayFail && (isWindowed || query === undefined)) return new TooMuchError();
  return new ConfigurationError(
    `the query returns more than ${MOST} rows${isWindowed ? " within two seconds" : "; with :from and :to in it, such as paid_at >= :from AND paid_at < :to, a longer window is compared in parts"}`,
  );
}

function look(found: Found, batch: readonly WrittenMessage[], request: SliceRequest): void {
  found.messages += batch.length;
  for (const message of batch) {
    const { createdMs: atMs, dueMs, id, receipt, state } = message;
    if (state === "sent" && (receipt === null || receipt === "")) {
      found.findings.push(createFinding("no-receipt", message, { id, atMs }));
    }
    if (dueMs !== undefined && dueMs < request.nowMs - request.settings.slackMs) {
      found.findings.push(createFinding("unconfirmed", message, { id, atMs }));
    }
    const name = nameOf(message);
    found.left.delete(name);
    if (found.named?.has(name) === false) found.alone.push(message);
  }
  if (request.mayFail && found.alone.length + found.findings.length > MOST) throw new TooMuchError();
}

/** Without a row just before or after the slice either. */
async function withoutRow(
  view: ReconcileView,
  alone: readonly WrittenMessage[],
  request: SliceRequest,
): Promise<readonly WrittenMessage[]> {
  const { isWindowed, query, settings, slice } = request;
  if (query === undefined || alone.length === 0 || !isWindowed) return alone;
  const left = new Map(alone.map((message) => [nameOf(message), message]));
  const lookInto = async (part: Window, mayFail: boolean): Promise<void> => {
    const { identities, more } = await view.rows(query, part, MOST);
    if (more) throw tooMuch({ ...request, mayFail });
    for (const identity of identities) left.delete(nameOf(identity));
  };
  await inSlices({ fromMs: slice.fromMs - settings.slackMs, toMs: slice.fromMs }, lookInto);
  await inSlices({ fromMs: slice.toMs, toMs: slice.toMs + settings.slackMs }, lookInto);
  return [...left.values()];
}

/** NUL occurs in neither part. */
function nameOf({ key, type }: Identity): string {
  return `${type}\0${key}`;
}
