/** Business rows against messages, in one slice of the window and one state of the database. */
import { ConfigurationError } from "../../runtime/errors.ts";
import { createFinding, type Finding } from "./finding.ts";
import type { Settings } from "./options.ts";
import { inSlices, TooMuchError } from "./slices.ts";
import type { Identity, ReconcileView, UserQuery, Window, WrittenMessage } from "./store.ts";

/** Rows, or messages without one, of a slice: about 20 MB. */
const MOST = 100_000;

/**
 * Business rows from this instant on have their messages still, if they ever had. Infinity: of none
 * it is known.
 */
export async function comparableSince(
  view: Pick<ReconcileView, "keptSince">,
  { keptForMs, slackMs }: Pick<Settings, "keptForMs" | "slackMs">,
  nowMs: number,
): Promise<number> {
  const keptSinceMs = keptForMs === undefined ? await view.keptSince() : nowMs - keptForMs;
  return (keptSinceMs ?? Number.POSITIVE_INFINITY) + slackMs;
}

/** What a slice came to. */
export interface SliceResult {
  readonly findings: readonly Finding[];
  readonly businessRows: number;
  readonly messages: number;
  readonly withoutKey: number;
  /** Business rows without message that were not told, because retention may have deleted it. */
  readonly undecided: number;
}

interface SliceRequest {
  readonly settings: Settings;
  readonly query: UserQuery | undefined;
  /** The query names the window. */
  readonly isWindowed: boolean;
  readonly slice: Window;
  /** Rows of a query that does not name the window are all in the first slice. */
  readonly isFirst: boolean;
  readonly nowMs: number;
  readonly mayFail: boolean;
}

interface Found {
  readonly findings: Finding[];
  /** The business rows; undefined: they are not compared. */
  readonly named: ReadonlySet<string> | undefined;
  /** Those of them whose message has not been seen. */
  readonly left: Map<string, Identity>;
  /** Messages whose business row is not among those of the slice. */
  readonly alone: WrittenMessage[];
  messages: number;
}

/**
 * Throws `TooMuchError` where the slice has to be shorter, and `ConfigurationError` where it cannot
 * be.
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
  // Most have been seen by now; the others may have been created at any time.
  const missing = await view.missing([...found.left.values()]);
  // Asked in the same state of the database: retention deletes on.
  // Rows of a query that does not name the window may be of any time.
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

/** Those of them whose row is not just before or behind the slice either. */
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

/** Neither part can hold NUL. */
function nameOf({ key, type }: Identity): string {
  return `${type}\0${key}`;
}
