/**
 * Finds SQLite at the first use: node:sqlite if this Node has it, else the package
 * @photostructure/sqlite, which has the same API.
 */
import { ConfigurationError, DatabaseUnavailableError, describeError, MissingPeerError } from "../../runtime/errors.ts";
import { isBusy, translateError } from "./errors.ts";

/** A prepared statement. */
export interface SqliteStatement {
  /** Runs it and returns its rows. */
  all(...params: readonly unknown[]): unknown[];
  /** Runs it and returns how many rows it changed. */
  run(...params: readonly unknown[]): { readonly changes: number | bigint };
}

/** An open, synchronous connection of node:sqlite, @photostructure/sqlite or better-sqlite3. */
export interface SqliteHandle {
  /** Prepares one statement. */
  prepare(text: string): SqliteStatement;
  /** Runs statements without parameters. */
  exec(text: string): unknown;
  /** Never called on your handle. */
  close(): unknown;
  /** node:sqlite and @photostructure/sqlite. */
  readonly isTransaction?: boolean;
  /** better-sqlite3. */
  readonly inTransaction?: boolean;
}

type SqliteClass = new (file: string) => SqliteHandle;

/**
 * Below this version two processes with one WAL file can, very rarely, lose a committed transaction
 * (the WAL-reset bug, 3.7.0 to 3.51.2).
 */
const SAFE_VERSION = [3, 51, 3] as const;

let loading: Promise<SqliteClass> | undefined;

function load(): Promise<SqliteClass> {
  loading ??= loadOnce().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function loadOnce(): Promise<SqliteClass> {
  const builtin = quietly(() => process.getBuiltinModule?.("node:sqlite"));
  if (builtin !== undefined) return (builtin as unknown as { readonly DatabaseSync: SqliteClass }).DatabaseSync;
  try {
    const loaded: { readonly DatabaseSync: unknown } = await import("@photostructure/sqlite");
    return loaded.DatabaseSync as SqliteClass;
  } catch (error) {
    throw new MissingPeerError(
      "@photostructure/sqlite",
      `SQLite on Node ${process.versions.node}, which has no node:sqlite,`,
      {
        cause: error,
        range: "^1.2.1",
      },
    );
  }
}

/**
 * Suppresses only Node 22's warning that node:sqlite is experimental, printed once at load. Loading
 * is synchronous, so no other code runs meanwhile.
 */
function quietly<T>(work: () => T): T {
  const emitWarning: unknown = Reflect.get(process, "emitWarning");
  if (typeof emitWarning !== "function") return work();
  process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    const type = typeof rest[0] === "string" ? rest[0] : (rest[0] as { readonly type?: string } | undefined)?.type;
    if (type === "ExperimentalWarning" && /SQLite/i.test(String(warning))) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return work();
  } finally {
    Reflect.set(process, "emitWarning", emitWarning);
  }
}

/** Whether the database has no file, so that only its own handle can see it. */
export function isMemory(file: string): boolean {
  return file === "" || file === ":memory:" || /^file:.*[?&]mode=memory/.test(file);
}

/** Options of {@link openHandle}. */
export interface OpenOptions {
  readonly file: string;
  /**
   * FULL: a commit survives a power cut. NORMAL: it survives everything else, without waiting for
   * the disk.
   */
  readonly synchronous: "FULL" | "NORMAL";
  readonly onWarning: (message: string) => void;
}

/**
 * Opens a handle of rowpost's own. busy_timeout is 0: two handles in one process that wait
 * synchronously would freeze each other and the event loop (rule: sqlite-handle).
 *
 * Throws `DatabaseUnavailableError` if the file cannot be opened, and `ConfigurationError` without
 * WAL mode (some network file systems), in which case readers and the writer would lock each other
 * out.
 */
export async function openHandle(options: OpenOptions): Promise<SqliteHandle> {
  const { file, synchronous, onWarning } = options;
  const Sqlite = await load();
  let handle: SqliteHandle;
  try {
    handle = new Sqlite(file);
  } catch (error) {
    throw new DatabaseUnavailableError(`the SQLite file ${file} cannot be opened (${describeError(error)})`, {
      cause: error,
    });
  }
  try {
    handle.exec("PRAGMA busy_timeout = 0");
    if (!isMemory(file)) {
      await requireWal(handle, file);
      warnOfVersion(handle, onWarning);
    }
    handle.exec(`PRAGMA synchronous = ${synchronous}`);
    return handle;
  } catch (error) {
    handle.close();
    throw translateError(error, `open the SQLite file ${file}`);
  }
}

/** Changing the mode needs exclusive access for a moment, so this waits for other transactions. */
async function requireWal(handle: SqliteHandle, file: string): Promise<void> {
  const giveUpAt = performance.now() + 5_000;
  for (;;) {
    try {
      const mode = pragma(handle, "PRAGMA journal_mode = WAL");
      if (mode === "wal") return;
      throw new ConfigurationError(
        `the SQLite file ${file} stays in journal mode ${String(mode)}; rowpost needs WAL, which network file systems do not offer`,
      );
    } catch (error) {
      if (!isBusy(error) || performance.now() > giveUpAt) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

let warned = false;

function warnOfVersion(handle: SqliteHandle, onWarning: (message: string) => void): void {
  const version = sqliteVersion(handle);
  if (warned || isSafe(version)) return;
  warned = true;
  onWarning(
    `SQLite ${version} has a bug that can lose a committed transaction when several processes use one WAL file; ${SAFE_VERSION.join(".")} has not (Node 22.23 or @photostructure/sqlite 1.2.1 bring it)`,
  );
}

/** Whether this version is free of the WAL-reset bug. */
export function isSafe(version: string): boolean {
  const parts = version.split(".").map(Number);
  for (const [index, wanted] of SAFE_VERSION.entries()) {
    const part = parts[index] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

export function sqliteVersion(handle: SqliteHandle): string {
  return String(pragma(handle, "SELECT sqlite_version()"));
}

/** First value of the first row. */
function pragma(handle: SqliteHandle, text: string): unknown {
  const row = handle.prepare(text).all()[0];
  return typeof row === "object" && row !== null ? Object.values(row)[0] : undefined;
}

/** File of a handle's main database; "" if it has none. */
export function fileOf(handle: SqliteHandle): string {
  const rows = handle.prepare("PRAGMA database_list").all() as readonly {
    readonly name?: unknown;
    readonly file?: unknown;
  }[];
  const main = rows.find((row) => row.name === "main");
  return typeof main?.file === "string" ? main.file : "";
}
