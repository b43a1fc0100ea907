/** SQLite: a library in this process, so statements are counted at the driver and the server's CPU time is the client's. */
import { existsSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { countCalls } from "../measure/count-calls.ts";
import {
  type BareConnection,
  type BenchDatabase,
  BODY_BYTES,
  type LoadRequest,
  loadSteps,
  type RowKind,
  temporaryName,
} from "./server.ts";

/** The part of node:sqlite's API that is used; @photostructure/sqlite has the same. */
interface SqliteStatement {
  all(...params: unknown[]): Record<string, unknown>[];
  run(...params: unknown[]): { readonly changes: number | bigint };
  columns(): readonly unknown[];
}
interface SqliteHandle {
  exec(text: string): void;
  prepare(text: string): SqliteStatement;
  close(): void;
}
interface SqliteDriver {
  readonly DatabaseSync: new (file: string) => SqliteHandle;
  readonly StatementSync: { readonly prototype: object };
}

let driver: SqliteDriver | undefined;
let counted = 0;
/** Above 0 while the bench itself uses a handle: everything is synchronous, so nobody else's statement can fall into such a stretch. */
let uncounted = 0;

/** The driver that the library takes too: Node's own where there is one. Counts its statements from the first call on. */
async function loadDriver(): Promise<SqliteDriver> {
  if (driver !== undefined) return driver;
  const builtIn = "node:sqlite";
  const fallback = "@photostructure/sqlite";
  const loaded: SqliteDriver = await import(builtIn).catch(() => import(fallback));
  const probe = new loaded.DatabaseSync(":memory:");
  const count = (): void => {
    if (uncounted === 0) counted += 1;
  };
  for (const method of ["run", "all", "get", "iterate"]) {
    countCalls(Object.getPrototypeOf(probe.prepare("SELECT 1")) as object, method, count);
  }
  countCalls(Object.getPrototypeOf(probe) as object, "exec", count);
  probe.close();
  driver = loaded;
  return loaded;
}

/** Statements of this process so far. */
export async function countSqliteStatements(): Promise<() => number> {
  await loadDriver();
  return () => counted;
}

/** A handle whose statements do not count. */
function silently<T>(work: () => T): T {
  uncounted += 1;
  try {
    return work();
  } finally {
    uncounted -= 1;
  }
}

/** Makes a file of its own in the folder of the URL's file, or in the folder for temporary files. */
export async function openSqlite(url: string, suffix: string): Promise<BenchDatabase> {
  const given = url.replace(/^sqlite:/, "");
  const file = join(given === "" ? tmpdir() : dirname(given), `${temporaryName(suffix)}.sqlite`);
  remove(file);
  const loaded = await loadDriver();
  const control = open(loaded, file);
  const version = String(silently(() => control.prepare("SELECT sqlite_version() AS version").all())[0]?.["version"]);

  return {
    product: "sqlite",
    version,
    url: `sqlite:${file}`,
    countsControl: false,
    placeholder: () => "?",
    connect: async () => bareConnection(open(loaded, file)),
    script: async (text) => silently(() => control.exec(text)),
    number: async (text) => Number(Object.values(silently(() => control.prepare(text).all())[0] ?? {})[0]),
    load: async (request) => silently(() => load(control, request)),
    clear: async () => silently(() => control.exec("DELETE FROM local_message")),
    tidy: async () => silently(() => control.exec("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")),
    async drop() {
      control.close();
      remove(file);
    },
    serverCpuMs: () => 0,
    statements: async () => counted,
  };
}

function remove(file: string): void {
  for (const part of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(part)) rmSync(part);
}

function open(loaded: SqliteDriver, file: string): SqliteHandle {
  const handle = new loaded.DatabaseSync(file);
  silently(() => handle.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000; PRAGMA synchronous = FULL"));
  return handle;
}

function bareConnection(handle: SqliteHandle): BareConnection {
  const prepared = new Map<string, { readonly statement: SqliteStatement; readonly returnsRows: boolean }>();
  return {
    async run({ text, params }) {
      let entry = prepared.get(text);
      if (entry === undefined) {
        const statement = handle.prepare(text);
        entry = { statement, returnsRows: statement.columns().length > 0 };
        prepared.set(text, entry);
      }
      if (entry.returnsRows) {
        const rows = entry.statement.all(...params);
        return { rows, affected: rows.length };
      }
      return { rows: [], affected: Number(entry.statement.run(...params).changes) };
    },
    simple: async (text) => handle.exec(text),
    close: async () => handle.close(),
  };
}

const HOUR = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 hour')";
const NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

/** Values by column, as SQL over the number `n`, beside the ones that all kinds have. */
const VALUES: Readonly<Record<RowKind, Readonly<Record<string, string>>>> = {
  waiting: {},
  finished: {
    state: "2",
    delivery_count: "1",
    lock_version: "2",
    message_id: "printf('%032x', n)",
    last_retry_at: NOW,
    sent_at: NOW,
  },
  delayed: { deliver_at: HOUR, next_retry_at: HOUR },
  failed: {
    state: "3",
    retry_count: "10",
    delivery_count: "10",
    lock_version: "20",
    fail_reason: "'ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:8081'",
    last_retry_at: NOW,
    next_retry_at: HOUR,
  },
};

function load(control: SqliteHandle, request: LoadRequest): void {
  const extra = VALUES[request.kind];
  const columns = ["message_type", "message_key", "topic", "message_body", ...Object.keys(extra)].join(", ");
  const head = `'{"orderId":' || n || ',"note":"'`;
  const values = [
    "'order.created'",
    "printf('m%09d', n)",
    `'${request.topic ?? "orders"}'`,
    `${head} || substr(replace(hex(zeroblob(${BODY_BYTES})), '0', 'x'), 1, ${BODY_BYTES - 2} - length(${head})) || '"}'`,
    ...Object.values(extra),
  ].join(", ");
  control.exec("BEGIN IMMEDIATE");
  for (const { first, count } of loadSteps(request)) {
    control.exec(
      `WITH RECURSIVE numbers (n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${first + count - 1})
       INSERT INTO local_message (${columns}) SELECT ${values} FROM numbers`,
    );
    if (!request.oneTransaction) control.exec("COMMIT; BEGIN IMMEDIATE");
  }
  control.exec("COMMIT");
}
