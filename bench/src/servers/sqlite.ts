/**
 * SQLite: a library in this process, so statements are counted at the driver and the server's CPU
 * time is the client's.
 */
import { existsSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type BareConnection,
  type BenchDatabase,
  BODY_BYTES,
  type LoadRequest,
  loadSteps,
  optionalValues,
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
}

let driver: SqliteDriver | undefined;
let counted = 0;

/**
 * The driver that the library takes too: Node's own where there is one, else
 * @photostructure/sqlite. From then on the library, which asks Node for `node:sqlite` first, is
 * given the same driver with a counter; the bench's own handles have none.
 */
async function loadDriver(): Promise<SqliteDriver> {
  if (driver !== undefined) return driver;
  const builtIn = "node:sqlite";
  const fallback = "@photostructure/sqlite";
  const loaded: SqliteDriver = await import(builtIn).catch(() => import(fallback));
  const original = Reflect.get(process, "getBuiltinModule") as ((name: string) => unknown) | undefined;
  const countingDriver = { DatabaseSync: countingClass(loaded.DatabaseSync) };
  Reflect.set(process, "getBuiltinModule", (name: string) => (name === builtIn ? countingDriver : original?.(name)));
  driver = loaded;
  return loaded;
}

/**
 * The same class, counting its handles' statements. The driver's own prototypes cannot be changed.
 */
function countingClass(Handle: SqliteDriver["DatabaseSync"]): SqliteDriver["DatabaseSync"] {
  return class CountingHandle extends Handle {
    override exec(text: string): void {
      counted += 1;
      super.exec(text);
    }

    override prepare(text: string): SqliteStatement {
      const statement = super.prepare(text);
      for (const method of ["run", "all", "get", "iterate"]) {
        const original = Reflect.get(statement, method) as (...params: unknown[]) => unknown;
        const value = (...params: unknown[]): unknown => {
          counted += 1;
          return Reflect.apply(original, statement, params);
        };
        Object.defineProperty(statement, method, { value });
      }
      return statement;
    }
  };
}

/** Statements of this process so far. Call it before the library opens its first handle. */
export async function countSqliteStatements(): Promise<() => number> {
  await loadDriver();
  return () => counted;
}

/** Creates a file in the folder of the URL's file, or in the temporary folder. */
export async function openSqlite(url: string, suffix: string): Promise<BenchDatabase> {
  const given = url.replace(/^sqlite:/, "");
  const file = join(given === "" ? tmpdir() : dirname(given), `${temporaryName(suffix)}.sqlite`);
  remove(file);
  const loaded = await loadDriver();
  const control = open(loaded, file, "FULL");
  const version = String(control.prepare("SELECT sqlite_version() AS version").all()[0]?.["version"]);

  return {
    product: "sqlite",
    version,
    url: `sqlite:${file}`,
    countsControl: false,
    placeholder: () => "?",
    // A relay's commit does not wait for the disk: what a power failure undoes is published again.
    connect: async (as) => bareConnection(open(loaded, file, as === "relay" ? "NORMAL" : "FULL")),
    script: async (text) => control.exec(text),
    number: async (text) => Number(Object.values(control.prepare(text).all()[0] ?? {})[0]),
    load: async (request) => load(control, request),
    clear: async () => control.exec("DELETE FROM local_message"),
    // No ANALYZE: hardly anyone runs it on a SQLite file, so plans must be right without it.
    tidy: async () => control.exec("PRAGMA wal_checkpoint(TRUNCATE)"),
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

function open(loaded: SqliteDriver, file: string, synchronous: "FULL" | "NORMAL"): SqliteHandle {
  const handle = new loaded.DatabaseSync(file);
  handle.exec(`PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000; PRAGMA synchronous = ${synchronous}`);
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

/** As the library writes instants: text that sorts like time. */
const NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')";
const HOUR = "strftime('%Y-%m-%d %H:%M:%f', 'now', '+1 hour')";

const FINISHED = {
  state: "2",
  delivery_count: "1",
  lock_version: "2",
  message_id: "printf('%032x', n)",
  last_retry_at: NOW,
  sent_at: NOW,
};

/** One row a second, as SQL; the row of the number `last` is of now. */
const createdAt = (last: number): string => `strftime('%Y-%m-%d %H:%M:%f', 'now', (n - ${last}) || ' seconds')`;

/** Values by column, as SQL over the number `n`, in addition to those of all kinds. */
const VALUES: Readonly<Record<RowKind, Readonly<Record<string, string>>>> = {
  waiting: {},
  finished: FINISHED,
  history: {
    ...FINISHED,
    state: "CASE WHEN n % 400 = 0 THEN 3 ELSE 2 END",
    fail_reason: "CASE WHEN n % 400 = 0 THEN 'ECONNREFUSED: the endpoint is away' END",
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
  const extra = { ...VALUES[request.kind], ...optionalValues(request, createdAt) };
  const bodyBytes = request.bodyBytes ?? BODY_BYTES;
  const columns = ["message_type", "message_key", "topic", "message_body", ...Object.keys(extra)].join(", ");
  const head = `'{"orderId":' || n || ',"note":"'`;
  const values = [
    "'order.created'",
    "printf('m%09d', n)",
    `'${request.topic ?? "orders"}'`,
    `${head} || substr(replace(hex(zeroblob(${bodyBytes})), '0', 'x'), 1, ${bodyBytes - 2} - length(${head})) || '"}'`,
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
