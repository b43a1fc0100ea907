import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Database, describeError } from "rowpost";
import { CommandFailure, errorCodes, InputError } from "./failure.ts";

/**
 * Engine and driver: mysql:// uses mysql2, mariadb:// the driver of that name; both work with both
 * servers.
 */
export type Engine = "mysql" | "mariadb" | "postgres" | "sqlite";

export interface DatabaseAddress {
  readonly engine: Engine;
  /** With the password; for `sqlite` the path of the file. Never printed. */
  readonly url: string;
  readonly label: string;
  readonly name: string;
  readonly password: string | undefined;
}

export const DATABASE_URL_VARIABLE = "ROWPOST_DATABASE_URL";
export const DATABASE_PASSWORD_VARIABLE = "ROWPOST_DATABASE_PASSWORD";

const FORMS =
  "mysql://user@host:3306/database, mariadb://user@host:3306/database, postgres://user@host:5432/database or sqlite:FILE";

const PASSWORD_HINT = `a password with special characters must be percent-encoded, or stand in ${DATABASE_PASSWORD_VARIABLE}`;

const ENGINES: Readonly<Record<string, Engine>> = {
  "mysql:": "mysql",
  "mariadb:": "mariadb",
  "postgres:": "postgres",
  "postgresql:": "postgres",
};

/**
 * Reads `--database`. The password may stand in the variable instead. Throws {@link InputError},
 * without repeating a password.
 */
export function parseDatabaseUrl(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): DatabaseAddress {
  if (/^sqlite:/i.test(text)) return sqliteAddress(text.slice("sqlite:".length));
  const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(text)?.[0].toLowerCase();
  const engine = scheme === undefined ? undefined : ENGINES[scheme];
  if (engine === undefined) {
    const what = scheme === undefined ? "has no scheme" : `begins with "${scheme}", which is no database known here`;
    throw new InputError(`--database ${what}; expected ${FORMS}`);
  }
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new InputError(`--database cannot be read as a URL (${PASSWORD_HINT}); expected ${FORMS}`);
  }
  const name = decoded(url.pathname.replace(/^\//, ""));
  // After a password with an unencoded / or @, host and path contain parts of it, so neither is
  // repeated.
  if (name === "" || name.includes("/") || url.pathname.includes("@")) {
    throw new InputError(`--database names no database: ${scheme}//user@host/DATABASE is expected (${PASSWORD_HINT})`);
  }
  const fromEnvironment = environment[DATABASE_PASSWORD_VARIABLE];
  if (url.password === "" && fromEnvironment !== undefined && fromEnvironment !== "") {
    url.password = encodeURIComponent(fromEnvironment);
  }
  return {
    engine,
    url: url.href,
    label: `${scheme}//${url.host}/${name}`,
    name,
    password: url.password === "" ? undefined : decoded(url.password),
  };
}

function sqliteAddress(rest: string): DatabaseAddress {
  // Other tools write sqlite:///tmp/a.db and sqlite://a.db: the path follows the slashes.
  const path = rest.startsWith("//") ? rest.slice(2) : rest;
  if (path === "")
    throw new InputError("--database sqlite: names no file; expected sqlite:FILE, such as sqlite:./app.db");
  if (/^:memory:/.test(path)) {
    throw new InputError(
      "--database sqlite::memory: would be empty and end with this command; expected sqlite:FILE, such as sqlite:./app.db",
    );
  }
  const file = resolve(path);
  return { engine: "sqlite", url: file, label: `sqlite:${file}`, name: file, password: undefined };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new InputError(`--database is not percent-encoded properly; expected ${FORMS}`);
  }
}

/**
 * SQLite creates missing files, so a mistyped name would look like an empty database. `mayCreate`:
 * for commands meant to create one.
 */
export function checkSqliteFile(address: DatabaseAddress, mayCreate: boolean): void {
  if (address.engine !== "sqlite") return;
  const { url: file } = address;
  if (existsSync(file)) {
    if (statSync(file).isDirectory()) throw new InputError(`--database ${address.label} is a folder, not a file`);
    return;
  }
  if (!existsSync(dirname(file)))
    throw new InputError(`--database ${address.label}: there is no folder ${dirname(file)}`);
  if (!mayCreate) {
    throw new CommandFailure(
      `there is no file ${file}; \`rowpost migrate --database ${address.label}\` makes it with its tables`,
    );
  }
}

/** Loads the driver; connects at the first use. */
export async function openDatabase(address: DatabaseAddress): Promise<Database> {
  switch (address.engine) {
    case "mysql":
      return (await import("rowpost/mysql")).mysql({ url: address.url });
    case "mariadb":
      return (await import("rowpost/mariadb")).mariadb({ url: address.url });
    case "postgres":
      return (await import("rowpost/postgres")).postgres({ url: address.url });
    case "sqlite":
      return (await import("rowpost/sqlite")).sqlite({ file: address.url });
  }
}

const NO_DATABASE = new Set(["1049", "3D000", "ER_BAD_DB_ERROR"]);
const NO_TABLE = new Set(["1146", "42P01"]);

/** Whether a table is missing. SQLite has no code for it. */
export function isMissingTable(error: unknown): boolean {
  return errorCodes(error).some((code) => NO_TABLE.has(code)) || /no such table/.test(describeError(error));
}

/** Whether the server reported that the database does not exist. */
export function isMissingDatabase(error: unknown): boolean {
  return errorCodes(error).some((code) => NO_DATABASE.has(code));
}

/**
 * Turns a missing table into the line to print. An error that already is one stays, since its cause
 * may be another.
 */
export function explainDatabaseError(error: unknown, address: DatabaseAddress): unknown {
  if (error instanceof CommandFailure || error instanceof InputError || !isMissingTable(error)) return error;
  return new CommandFailure(`a table is missing in ${address.label}; \`rowpost migrate\` makes rowpost's own tables`, {
    cause: error,
  });
}
