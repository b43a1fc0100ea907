/** A console over a database of its own, and requests to it as browsers and programs send them. */
import { createOutbox, type Database, migrate } from "rowpost";
import type { MessageState } from "rowpost/admin";
import { expect } from "vitest";
import { randomSecret, sha256 } from "../src/access/secrets.ts";
import { type Console, type ConsoleOptions, createConsole } from "../src/console.ts";
import { ROLES, type Role, type Route } from "../src/http/route.ts";
import { ROUTES, type RouteName } from "../src/http/routes.ts";

const STATES: readonly MessageState[] = ["pending", "sending", "sent", "failed", "consumed", "suspended"];
const NO_OPERATION = "00000000-0000-4000-8000-000000000000";
const ORIGIN = "http://console.test";

/** What a request is sent with. */
export interface Sent {
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** As it is, instead of `body`. */
  readonly rawBody?: string;
}

export interface Answered<Json = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Json;
}

export interface ConsoleBench {
  readonly database: Database;
  readonly made: Console;
  readonly readOnly: Console;
  /** Another process, as far as the database can tell. The caller closes it. */
  another(): Console;
  /**
   * A token for each role, one of an admin for the topics `mine.*` alone, one that has expired, and
   * one that nobody gave out.
   */
  readonly tokens: Readonly<Record<Role | "limited" | "expired" | "unknown", string>>;
  ask(name: RouteName, sent?: Sent, of?: Console): Promise<Answered>;
  /** Messages in this state; returns their ids, ascending. */
  put(
    state: MessageState,
    count: number,
    values?: { readonly topic?: string; readonly reason?: string },
  ): Promise<string[]>;
  sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  close(): Promise<void>;
}

/** Opens it on an empty database. */
export async function openConsole(database: Database, options: Partial<ConsoleOptions> = {}): Promise<ConsoleBench> {
  await migrate(database, { layout: database.defaultLayout });
  const names = [...ROLES, "limited", "expired", "unknown"] as const;
  const tokens = Object.fromEntries(names.map((name) => [name, `rp_${randomSecret()}`])) as ConsoleBench["tokens"];
  const access = {
    tokens: [
      ...ROLES.map((role) => ({ name: `the ${role}`, role, hash: sha256(tokens[role]) })),
      { name: "the limited", role: "admin" as const, hash: sha256(tokens.limited), topics: ["mine.*"] },
      { name: "late", role: "admin" as const, hash: sha256(tokens.expired), expires: "2026-01-01T00:00:00Z" },
    ],
  };
  const common = {
    sources: [{ name: "main", database }],
    requestsPerSecond: 100_000,
    ...options,
    access: { ...access, ...options.access },
  };
  const made = createConsole(common);
  const readOnly = createConsole({ ...common, readOnly: true });
  const outbox = createOutbox({ database });
  const session = await database.connect({ purpose: "tool" });
  const sql = async (text: string) => (await session.run({ name: "test", text, params: [] })).rows;
  let puts = 0;

  return {
    database,
    made,
    readOnly,
    tokens,
    sql,
    another: () => createConsole(common),
    ask: (name, sent = {}, of = made) => ask(of, name, sent),
    async put(state, count, { reason, topic = "orders" } = {}) {
      puts += 1;
      const keys = Array.from({ length: count }, (_, index) => `put-${puts}-${String(index).padStart(5, "0")}`);
      const messages = keys.map((key) => ({ type: "order.created", key, topic, body: { key } }));
      await outbox.transaction((tx) => outbox.enqueue(tx, messages));
      const ours = `message_key LIKE 'put-${puts}-%'`;
      await sql(
        `UPDATE local_message SET state = ${STATES.indexOf(state)}, fail_reason = ${reason === undefined ? "NULL" : `'${reason}'`} WHERE ${ours}`,
      );
      const rows = await sql(`SELECT id FROM local_message WHERE ${ours} ORDER BY id`);
      return rows.map((row) => String(row["id"]));
    },
    async close() {
      await session.close();
      await made.close();
      await readOnly.close();
      await database.close();
    },
  };
}

/** Sends it; what is answered with success is what the route's schema says, no more and no less. */
async function ask(of: Console, name: RouteName, sent: Sent): Promise<Answered> {
  const route: Route = ROUTES[name];
  const params: Readonly<Record<string, string>> = { source: "main", ...sent.params };
  const path = route.path.replace(/:(\w+)/g, (_, param: string) =>
    encodeURIComponent(params[param] ?? (["operation", "silence"].includes(param) ? NO_OPERATION : "1")),
  );
  const url = new URL(`/api/v1${path}`, ORIGIN);
  for (const [key, value] of Object.entries(sent.query ?? {})) url.searchParams.set(key, value);
  const body = sent.rawBody ?? (sent.body === undefined ? undefined : JSON.stringify(sent.body));
  const response = await of.fetch(
    new Request(url, {
      method: route.method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(sent.token === undefined ? {} : { authorization: `Bearer ${sent.token}` }),
        ...sent.headers,
      },
      ...(body === undefined ? {} : { body }),
    }),
  );
  const text = await response.text();
  const json = parsed(text);
  if (response.status === 200 && route.answer !== undefined) expect(route.answer.parse(json)).toEqual(json);
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(text).not.toMatch(/\n\s+at .*\.[jt]s:\d/);
  return { status: response.status, headers: response.headers, text, json: json as Record<string, unknown> };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The ETag of a message, for `If-Match`. */
export async function etagOf(bench: ConsoleBench, id: string): Promise<string> {
  const { headers } = await bench.ask("message", { token: bench.tokens.admin, params: { id } });
  return headers.get("etag") ?? "";
}
