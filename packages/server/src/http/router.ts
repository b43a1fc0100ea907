import { randomUUID } from "node:crypto";
import { Hono } from "hono";
import {
  ConfigurationError,
  describeError,
  InvalidMessageError,
  type Logger,
  type Metrics,
  RowpostError,
} from "rowpost";
import type { z } from "zod";
import type { Principal } from "../access/principal.ts";
import { silenceId } from "./alert-schemas.ts";
import { operationId } from "./bulk-schemas.ts";
import { type Call, type ConsoleParts, firstSource, type Handler, type HandlersOf } from "./call.ts";
import { createDeniedLog, type DeniedLog } from "./denied.ts";
import { versionOf } from "./etag.ts";
import { languageOf, Problem, problemResponse } from "./problem.ts";
import { createRateLimit } from "./rate-limit.ts";
import { jsonBodyOf } from "./request-body.ts";
import { mayDo, type Route } from "./route.ts";
import { ROUTES, type RouteName } from "./routes.ts";
import { messageId } from "./schemas.ts";
import { refuseForeign } from "./security.ts";
import { refuseClosed, refuseOthers } from "./topic-limits.ts";

export interface RouterOptions extends ConsoleParts {
  readonly handlers: HandlersOf<RouteName>;
  readonly publicOrigin: string | undefined;
  readonly requestsPerSecond: number;
  readonly logger: Logger;
}

type Params = Readonly<Record<string, string>>;
type AnyHandler = (call: Readonly<Record<keyof Call<RouteName>, unknown>>) => ReturnType<Handler<RouteName>>;

/** Answers paths below `/api/v1`; never rejects. */
export function createRouter(options: RouterOptions): (request: Request) => Promise<Response> {
  const app = new Hono().basePath("/api/v1");
  const denied = createDeniedLog(firstSource(options).operations, options.logger);
  const limit = createRateLimit(options.requestsPerSecond);
  for (const name of Object.keys(ROUTES) as RouteName[]) {
    const { method, path } = ROUTES[name];
    app.on(method, path, async (context) => {
      const beganAt = performance.now();
      const response = await answer(options, { name, denied, limit }, context.req.raw, context.req.param());
      measure(options.metrics, name, response.status, performance.now() - beganAt);
      return response;
    });
  }
  app.notFound(({ req }) => {
    const { pathname } = new URL(req.url);
    options.metrics.increment("rowpost_http_requests_total", { route: "(none)", method: "(any)", status: "404" });
    return failed(options, req.raw, new Problem("not-found", `there is no ${req.method} ${pathname}`));
  });
  return async (request) => await app.fetch(request);
}

function measure(metrics: Metrics, name: RouteName, status: number, ms: number): void {
  const { audit, method, path: route }: Route = ROUTES[name];
  metrics.increment("rowpost_http_requests_total", { route, method, status: String(status) });
  metrics.observe("rowpost_http_duration_ms", { route }, ms);
  if (audit !== undefined) metrics.increment("rowpost_audit_total", { action: audit, result: auditResult(status) });
}

function auditResult(status: number): "done" | "denied" | "conflict" | "failed" {
  if (status < 400) return "done";
  if (status === 401 || status === 403) return "denied";
  return [409, 410, 412].includes(status) ? "conflict" : "failed";
}

interface Matched {
  readonly name: RouteName;
  readonly denied: DeniedLog;
  readonly limit: (name: string) => void;
}

async function answer(options: RouterOptions, matched: Matched, request: Request, params: Params): Promise<Response> {
  const { denied, name } = matched;
  const route: Route = ROUTES[name];
  let principal: Principal | undefined;
  try {
    principal = await options.access.principalOf(request);
    admit(options, matched, request, principal);
    const handler = options.handlers[name] as unknown as AnyHandler;
    const asked = await given(options, route, request, params);
    if (principal !== undefined) await refuseOthers(route, principal.topics, asked);
    const reply = await handler({ request, principal, ...asked });
    if (reply instanceof Response) return reply;
    return new Response(`${JSON.stringify(reply.json)}\n`, {
      headers: { "content-type": "application/json", ...reply.headers },
    });
  } catch (error) {
    if (error instanceof Problem) await denied({ route, name, principal, problem: error, params });
    return failed(options, request, error, route);
  }
}

/** Throws a {@link Problem} for who may not. */
function admit(
  { access, publicOrigin, readOnly }: RouterOptions,
  { limit, name }: Matched,
  request: Request,
  principal: Principal | undefined,
): void {
  const route: Route = ROUTES[name];
  refuseForeign(request, { hasCookie: access.hasCookie(request), publicOrigin });
  if (principal === undefined && route.role !== "anyone") throw new Problem("unauthenticated", "log in first");
  if (principal !== undefined) limit(principal.name);
  if (principal !== undefined && !mayDo(principal.role, route.role)) {
    const more = { role: principal.role, needed: route.role };
    throw new Problem("forbidden", `this needs the role ${route.role}, and you have ${principal.role}`, { more });
  }
  refuseClosed(route, principal?.topics);
  if (route.changes === true && readOnly) throw new Problem("read-only", "the console was started with --read-only");
}

/** Parameters with a format. The queue and the channels check their own names. */
const PARAMETERS: Readonly<Record<string, z.ZodType>> = { id: messageId, operation: operationId, silence: silenceId };

type Given = Readonly<Record<Exclude<keyof Call<RouteName>, "request" | "principal">, unknown>> &
  Parameters<typeof refuseOthers>[2];

async function given({ sources }: RouterOptions, route: Route, request: Request, params: Params): Promise<Given> {
  const source = params["source"] === undefined ? undefined : sources.find(({ name }) => name === params["source"]);
  if (params["source"] !== undefined && source === undefined)
    throw new Problem("not-found", `there is no source ${params["source"]}`);
  for (const [name, shape] of Object.entries(PARAMETERS)) {
    if (params[name] !== undefined) checked(shape, params[name], `/${name}`);
  }
  if (route.ifMatch === true) versionOf(request.headers.get("if-match"));
  const query = route.query && checked(route.query, Object.fromEntries(new URL(request.url).searchParams), "");
  const body = route.body && checked(route.body, await jsonBodyOf(request, route.mostBytes), "");
  const { channel, group, id, operation, silence, topic } = params;
  return { source, id, topic, group, operation, silence, channel, query, body };
}

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown, at: string): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.map(({ message, path }) => ({
    pointer: at + path.map((part) => `/${String(part)}`).join(""),
    message,
  }));
  const [first] = errors;
  const detail = `${first?.pointer.replace(/^\//, "") || "the request"}: ${first?.message ?? "wrong"}`;
  throw new Problem("invalid-request", detail, { more: { errors } });
}

function failed({ logger }: RouterOptions, request: Request, error: unknown, route?: Route): Response {
  const instance = `urn:uuid:${randomUUID()}`;
  const problem = error instanceof Problem ? error : problemOf(error, route?.changes === true);
  if (problem.status >= 500)
    logger.error("a request failed", { instance, path: new URL(request.url).pathname, error: describeError(error) });
  return problemResponse(problem, languageOf(request.headers.get("accept-language")), instance);
}

/** Errors of the library. Its texts about input and tables are meant for users. */
function problemOf(error: unknown, isChange: boolean): Problem {
  if (error instanceof ConfigurationError || error instanceof InvalidMessageError)
    return new Problem("invalid-request", error.message);
  if (!(error instanceof RowpostError)) return new Problem("unexpected", "the log has the reason under `instance`");
  if (error.code === "SCHEMA" || error.code === "PERMISSION") return new Problem("database-unfit", error.message);
  const isSlow = !isChange && /timeout|timed out|no answer/i.test(describeError(error));
  const headers = { "retry-after": "2" };
  return isSlow
    ? new Problem("statement-timeout", "a statement took too long and was given up; narrow the search", { headers })
    : new Problem("database-away", `${error.code}: nothing was changed, or it is not known; look, and try again`, {
        headers,
      });
}
