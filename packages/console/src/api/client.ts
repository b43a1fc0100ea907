/**
 * The API as typed calls. Names, paths, queries, bodies and answers come from the server's route
 * table, so a changed route breaks the build.
 */
import type { AnswerOf, BodyOf, PathOf, QueryOf, RouteName } from "rowpost-server/api";

/** Repeated here, because only types can be imported. */
const ROUTES = {
  session: "GET /session",
  login: "POST /session",
  exchangeLink: "POST /session/exchange",
  logout: "DELETE /session",
  meta: "GET /meta",
  pulse: "GET /pulse",
  overview: "GET /s/:source/overview",
  topics: "GET /s/:source/topics",
  relays: "GET /s/:source/relays",
  messages: "GET /s/:source/messages",
  lookup: "GET /s/:source/lookup",
  message: "GET /s/:source/messages/:id",
  body: "GET /s/:source/messages/:id/body",
  rawBody: "GET /s/:source/messages/:id/body/raw",
  keyQueue: "GET /s/:source/messages/:id/key-queue",
  retry: "POST /s/:source/messages/:id/actions/retry",
  resend: "POST /s/:source/messages/:id/actions/resend",
  suspend: "POST /s/:source/messages/:id/actions/suspend",
  resume: "POST /s/:source/messages/:id/actions/resume",
  confirm: "POST /s/:source/messages/:id/actions/confirm",
  archive: "POST /s/:source/messages/:id/actions/archive",
  copy: "POST /s/:source/messages/:id/copies",
  suspendScope: "POST /s/:source/suspensions",
  resumeScope: "POST /s/:source/suspensions/lift",
  resetBackoff: "POST /s/:source/reset-backoff",
  preview: "POST /s/:source/previews",
  startOperation: "POST /s/:source/operations",
  operations: "GET /s/:source/operations",
  operation: "GET /s/:source/operations/:operation",
  cancelOperation: "POST /s/:source/operations/:operation/cancel",
  failures: "GET /s/:source/failures",
  queueTopics: "GET /s/:source/queue",
  queueGroups: "GET /s/:source/queue/:topic/groups",
  queueMessages: "GET /s/:source/queue/:topic/messages",
  queueMessage: "GET /s/:source/queue/:topic/messages/:id",
  queueBody: "GET /s/:source/queue/:topic/messages/:id/body",
  queueDead: "GET /s/:source/queue/:topic/groups/:group/dead",
  queueRewinds: "GET /s/:source/queue/:topic/groups/:group/rewinds",
  queueRewindPlan: "GET /s/:source/queue/:topic/groups/:group/rewinds/plan",
  queueRewind: "POST /s/:source/queue/:topic/groups/:group/rewinds",
  queuePause: "POST /s/:source/queue/:topic/groups/:group/pause",
  queueResume: "POST /s/:source/queue/:topic/groups/:group/resume",
  queueSkip: "POST /s/:source/queue/:topic/groups/:group/skip",
  queueRedeliver: "POST /s/:source/queue/:topic/groups/:group/redeliver",
  queueDiscard: "POST /s/:source/queue/:topic/groups/:group/discard",
  queueEdit: "POST /s/:source/queue/:topic/groups/:group/edit",
  unconfirmed: "GET /s/:source/unconfirmed",
  doctor: "GET /s/:source/doctor",
  alerts: "GET /s/:source/alerts",
  addSilence: "POST /s/:source/alerts/silences",
  endSilence: "POST /s/:source/alerts/silences/:silence/end",
  testChannel: "POST /s/:source/alerts/channels/:channel/test",
  audit: "GET /s/:source/audit",
} as const satisfies { readonly [Name in RouteName]: PathOf<Name> };

export interface Given<Name extends RouteName> {
  readonly source?: string;
  readonly id?: string;
  readonly operation?: string;
  readonly topic?: string;
  readonly group?: string;
  readonly silence?: string;
  readonly channel?: string;
  readonly query?: QueryOf<Name>;
  readonly body?: BodyOf<Name>;
  readonly ifMatch?: string;
  readonly signal?: AbortSignal;
}

export interface Reply<Name extends RouteName> {
  readonly answer: AnswerOf<Name>;
  readonly etag: string | undefined;
}

/** A refusal by the server; `unreachable`: no answer. */
export class ApiProblem extends Error {
  readonly code: string;
  readonly title: string;
  readonly more: Readonly<Record<string, unknown>>;

  constructor(code: string, title: string, detail: string, more: Readonly<Record<string, unknown>> = {}) {
    super(detail);
    this.name = "ApiProblem";
    this.code = code;
    this.title = title;
    this.more = more;
  }

  /** The database or the connection is away: data stays visible, and actions are disabled. */
  get isAway(): boolean {
    return ["unreachable", "database-away", "database-unfit", "statement-timeout", "unexpected"].includes(this.code);
  }
}

export function addressOf<Name extends RouteName>(
  name: Name,
  { channel = "", group = "", id = "", operation = "", query, silence = "", source = "", topic = "" }: Given<Name>,
): string {
  const path = ROUTES[name]
    .replace(/^\w+ \//, "")
    .replace(":source", encodeURIComponent(source))
    .replace(":topic", encodeURIComponent(topic))
    .replace(":group", encodeURIComponent(group))
    .replace(":id", encodeURIComponent(id))
    .replace(":operation", encodeURIComponent(operation))
    .replace(":silence", encodeURIComponent(silence))
    .replace(":channel", encodeURIComponent(channel));
  const pairs = Object.entries(query ?? {}).flatMap(([key, value]) =>
    typeof value === "string" || typeof value === "number" ? [[key, `${value}`]] : [],
  );
  const search = new URLSearchParams(pairs).toString();
  return new URL(`api/v1/${path}${search === "" ? "" : `?${search}`}`, document.baseURI).href;
}

/** Calls a route. Throws an {@link ApiProblem}, and what `signal` says when it ends the call. */
export async function call<Name extends RouteName>(name: Name, given: Given<Name> = {}): Promise<Reply<Name>> {
  const { body, ifMatch, signal } = given;
  const headers = new Headers({ "accept-language": document.documentElement.lang });
  if (body !== undefined) headers.set("content-type", "application/json");
  if (ifMatch !== undefined) headers.set("if-match", ifMatch);
  const method = ROUTES[name].split(" ", 1)[0] ?? "GET";
  const init: RequestInit = { method, headers, cache: "no-store" };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal !== undefined) init.signal = signal;
  const response = await reached(addressOf(name, given), init);
  if (!response.ok) throw await problemOf(response);
  const answer = (response.status === 204 ? undefined : await jsonOf(response, signal)) as AnswerOf<Name>;
  return { answer, etag: response.headers.get("etag") ?? undefined };
}

/** A proxy's page or a truncated answer is no answer. */
async function jsonOf(response: Response, signal: AbortSignal | undefined): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new ApiProblem("unreachable", "", "");
  }
}

async function reached(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new ApiProblem("unreachable", "", "");
  }
}

/** A proxy may answer in another format than the server's problems. */
async function problemOf(response: Response): Promise<ApiProblem> {
  const { detail, title, type, ...more } = await response
    .json()
    .then((json: unknown) => (typeof json === "object" && json !== null ? (json as Record<string, unknown>) : {}))
    .catch((): Record<string, unknown> => ({}));
  const code = typeof type === "string" ? type.replace("urn:rowpost:problem:", "") : "unreachable";
  const words = (value: unknown): string => (typeof value === "string" ? value : "");
  return new ApiProblem(code, words(title), words(detail) || `HTTP ${response.status}`, more);
}
