/**
 * The route table: the single source of all routes, their rights, inputs and outputs. The router,
 * the check of rights, the OpenAPI document, the app's types and the test of all routes with all
 * roles are derived from it.
 */
import type { z } from "zod";
import { ALERT_ROUTES } from "./alert-routes.ts";
import { BULK_ROUTES } from "./bulk-routes.ts";
import { CARE_ROUTES } from "./care-routes.ts";
import { QUEUE_ROUTES } from "./queue-routes.ts";
import { look, lookFiltered, type Route } from "./route.ts";
import {
  auditEntry,
  auditQuery,
  changed,
  copied,
  copyBody,
  failureList,
  linkToken,
  listOf,
  login,
  messageBody,
  messageDetail,
  messageList,
  messageQuery,
  meta,
  overview,
  pulse,
  reasonBody,
  relayList,
  retryBody,
  session,
  suspendBody,
  text,
  topicList,
} from "./schemas.ts";

const change = { method: "POST", role: "operator", changes: true, ifMatch: true, answer: changed } as const;

const lookupQuery = messageQuery.pick({ type: true, key: true }).extend({
  /** Tried as an id, then as a key. */
  word: text(255).optional(),
});

export const ROUTES = {
  session: { ...look, limited: "free", path: "/session", role: "anyone", about: "who is logged in", answer: session },
  login: {
    limited: "free",
    method: "POST",
    path: "/session",
    role: "anyone",
    audit: "login",
    about: "log in with name and password",
    body: login,
    answer: session,
  },
  exchangeLink: {
    limited: "free",
    method: "POST",
    path: "/session/exchange",
    role: "anyone",
    audit: "login",
    about: "log in with a one-time link",
    body: linkToken,
    answer: session,
  },
  logout: {
    limited: "free",
    method: "DELETE",
    path: "/session",
    role: "anyone",
    audit: "logout",
    about: "log out",
    answer: undefined,
    status: 204,
  },
  meta: {
    ...look,
    limited: "free",
    path: "/meta",
    about: "version, sources, and what I may do",
    answer: meta,
  },
  pulse: {
    ...lookFiltered,
    path: "/pulse",
    about: "the few numbers that a page asks for often",
    answer: pulse,
  },
  overview: {
    ...lookFiltered,
    path: "/s/:source/overview",
    answer: overview,
    about: "what is wrong, and how much waits",
  },
  topics: {
    ...lookFiltered,
    path: "/s/:source/topics",
    about: "topics with unfinished messages",
    answer: topicList,
  },
  relays: {
    ...lookFiltered,
    path: "/s/:source/relays",
    about: "relays and their shards",
    answer: relayList,
  },
  messages: {
    ...lookFiltered,
    path: "/s/:source/messages",
    query: messageQuery,
    answer: messageList,
    about: "messages, the newest first",
  },
  lookup: {
    ...lookFiltered,
    path: "/s/:source/lookup",
    query: lookupQuery,
    answer: messageList,
    about: "a message by its key, its type and key, or a word; in the table and its archive",
  },
  message: {
    ...look,
    path: "/s/:source/messages/:id",
    answer: messageDetail,
    about: "a message, why it is not sent, and what people did to it",
  },
  body: {
    ...look,
    path: "/s/:source/messages/:id/body",
    role: "operator",
    audit: "body",
    answer: messageBody,
    about: "body and headers of a message",
  },
  rawBody: {
    ...look,
    path: "/s/:source/messages/:id/body/raw",
    role: "operator",
    audit: "body",
    answer: undefined,
    about: "the whole body of a message, as an attachment",
  },
  keyQueue: {
    ...look,
    path: "/s/:source/messages/:id/key-queue",
    answer: messageList,
    about: "unfinished messages with the ordering key of this one, the newest first",
  },
  retry: {
    ...change,
    path: "/s/:source/messages/:id/actions/retry",
    audit: "retry",
    body: retryBody,
    about: "send a failed message again, with all its attempts",
  },
  resend: {
    ...change,
    path: "/s/:source/messages/:id/actions/resend",
    role: "admin",
    audit: "resend",
    body: reasonBody,
    about: "send a message again that is sent: its consumers get it twice",
  },
  suspend: {
    ...change,
    path: "/s/:source/messages/:id/actions/suspend",
    audit: "suspend",
    body: suspendBody,
    about: "hold a message back",
  },
  resume: {
    ...change,
    path: "/s/:source/messages/:id/actions/resume",
    audit: "resume",
    body: reasonBody,
    about: "let a suspended message go",
  },
  confirm: {
    ...change,
    path: "/s/:source/messages/:id/actions/confirm",
    audit: "confirm",
    body: reasonBody,
    about: "say that a sent message is consumed",
  },
  archive: {
    ...change,
    path: "/s/:source/messages/:id/actions/archive",
    role: "admin",
    audit: "archive",
    body: reasonBody,
    about: "move a finished or failed message into the archive",
  },
  copy: {
    ...change,
    path: "/s/:source/messages/:id/copies",
    role: "admin",
    audit: "copy",
    body: copyBody,
    answer: copied,
    mostBytes: 33_554_432,
    about: "send a new message that is like this one but for what is changed, and keep the old one or set it aside",
  },
  ...BULK_ROUTES,
  ...QUEUE_ROUTES,
  ...CARE_ROUTES,
  ...ALERT_ROUTES,
  failures: {
    ...lookFiltered,
    path: "/s/:source/failures",
    answer: failureList,
    about: "failed messages in groups of one cause",
  },
  audit: {
    ...lookFiltered,
    path: "/s/:source/audit",
    query: auditQuery,
    answer: listOf(auditEntry),
    about: "who changed what and why; others than admins see what they did themselves",
  },
} as const satisfies Readonly<Record<string, Route>>;

/** Name of a route, which is also the permission to call it. */
export type RouteName = keyof typeof ROUTES;

type Table = typeof ROUTES;

/** Method and path of a route. */
export type PathOf<Name extends RouteName> = `${Table[Name]["method"]} ${Table[Name]["path"]}`;

/** Answer of a route. */
export type AnswerOf<Name extends RouteName> = Table[Name]["answer"] extends z.ZodType
  ? z.output<Table[Name]["answer"]>
  : undefined;

/** Query of a route, as written in a URL. */
export type QueryOf<Name extends RouteName> = Table[Name] extends { readonly query: infer Query extends z.ZodType }
  ? z.input<Query>
  : Record<never, never>;

/** Body of a request. */
export type BodyOf<Name extends RouteName> = Table[Name] extends { readonly body: infer Body extends z.ZodType }
  ? z.input<Body>
  : undefined;
