/** Channels that answer as they are told, and files of `--alerts` for them. */
import { writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Database } from "rowpost";
import { mariadb } from "rowpost/mariadb";
import { postgres } from "rowpost/postgres";
import { sqlite } from "rowpost/sqlite";
import { describe } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { RULE_NAMES, type RuleName } from "../src/alerts/rules.ts";
import { type AlertsState, parseState } from "../src/alerts/state.ts";
import { temporaryFile } from "./command.ts";

/** A request to a channel. */
export interface Told {
  /** Its path. */
  readonly path: string;
  /** The same for each attempt of a notice. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
  /** `kind rule subject` of each alert, the gravest first. */
  readonly alerts: readonly string[];
}

export interface Hook {
  /** All of it, in the order in which it came. */
  readonly told: readonly Told[];
  url(path: string): string;
  /** What becomes of the next requests to this path. Default: 204. */
  answers(path: string, ...answers: readonly Answer[]): void;
  /** Resolves once so many requests have come to this path. */
  came(path: string, count: number): Promise<void>;
  close(): void;
}

/** `never`: accepted, and not answered. */
export type Answer = number | "never" | "cut";

interface Sent extends Pick<Told, "title" | "text"> {
  readonly alerts: readonly { readonly kind: string; readonly rule: string; readonly subject: string }[];
}

/** Starts it on a free port. */
export async function startHook(): Promise<Hook> {
  const told: Told[] = [];
  const planned = new Map<string, Answer[]>();
  const waiting = new Set<() => void>();
  const server = createServer((request, response) => {
    const path = request.url ?? "/";
    let body = "";
    request.on("data", (part) => {
      body += String(part);
    });
    request.on("end", () => {
      const { alerts, text, title } = JSON.parse(body) as Sent;
      const events = alerts.map(({ kind, rule, subject }) => `${kind} ${rule} ${subject}`);
      told.push({ path, id: String(request.headers["webhook-id"]), title, text, alerts: events });
      respond(response, planned.get(path)?.shift() ?? 204);
      for (const look of waiting) look();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    told,
    url: (path) => base + path,
    answers: (path, ...answers) => void planned.set(path, [...answers]),
    came: (path, count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (told.filter((each) => each.path === path).length < count) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function respond(response: ServerResponse, answer: Answer): void {
  if (answer === "never") return;
  if (answer === "cut") response.destroy();
  else response.writeHead(answer).end();
}

/** Only these rules, each with what is set for it. */
export function onlyRules(rules: Partial<Record<RuleName, object>>): Record<string, unknown> {
  return Object.fromEntries(RULE_NAMES.map((rule) => [rule, rules[rule] ?? "off"]));
}

/** A channel that is a webhook. */
export function webhookAt(url: string, more: object = {}): object {
  return { type: "webhook", url, ...more };
}

/** Writes a file of `--alerts`; returns its path. */
export function writeAlerts(path: string, content: object): string {
  writeFileSync(path, JSON.stringify(content));
  return path;
}

/** What an evaluator left in the table. */
export async function storedAlerts(database: Database): Promise<AlertsState> {
  const store = database.alerts({ layout: database.defaultLayout });
  try {
    return parseState((await store.read()).state);
  } finally {
    await store.close();
  }
}

/** As an evaluator leaves it that has ended. */
export async function putAlerts(database: Database, state: AlertsState): Promise<void> {
  const store = database.alerts({ layout: database.defaultLayout });
  const lease = { owner: "e".repeat(36), leaseMs: 60_000 };
  await store.take(lease);
  await store.save({ ...lease, state: JSON.stringify(state) });
  await store.release(lease.owner);
  await store.close();
}

/** Of tests, as its owner. */
export async function runSql(database: Database, text: string) {
  const session = await database.connect({ purpose: "tool" });
  const { rows } = await session.run({ name: "test", text, params: [] });
  await session.close();
  return rows;
}

/** An empty database, and what it is reached by. */
export interface AlertDatabase {
  readonly database: Database;
  /** As `--database` takes it. */
  readonly url: string;
  /** Behind the database's `close`. */
  drop(): Promise<void>;
}

/** A block of the same tests for each database. */
export function describeDatabases(title: string, cases: (create: () => Promise<AlertDatabase>) => void): void {
  describe(`${title} on sqlite`, () => {
    cases(async () => {
      const place = await temporaryFile();
      return { database: sqlite({ file: place.file }), url: place.url, drop: () => place.remove() };
    });
  });
  describeWithService(["mariadb", "postgres"], title, ({ name }) => {
    cases(async () => {
      const made = await createTestDatabase(name);
      const { url } = made;
      return { database: name === "mariadb" ? mariadb({ url }) : postgres({ url }), url, drop: () => made.drop() };
    });
  });
}
