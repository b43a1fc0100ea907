/** Shared by all commands on a database: options, table layout, opening and closing. */
import { type Command, Option } from "commander";
import { createLayout, type Database, SHIPPED_LAYOUTS, type TableLayout } from "rowpost";
import type { MessageAdmin, MessageState } from "rowpost/admin";
import {
  checkSqliteFile,
  DATABASE_PASSWORD_VARIABLE,
  DATABASE_URL_VARIABLE,
  type DatabaseAddress,
  explainDatabaseError,
  openDatabase,
  parseDatabaseUrl,
} from "../database-url.ts";
import { InputError, stateMapping } from "./arguments.ts";
import { type CommandContext, keepSecret } from "./context.ts";
import { layoutOptionsOf } from "./layout-file.ts";

/** Options of {@link addConnectionOptions}, as commander hands them over. */
export interface ConnectionFlags {
  readonly database?: string;
  readonly table?: string;
  readonly layout?: string;
  readonly states?: Partial<Record<MessageState, string | number>>;
  readonly json?: true;
  readonly verbose?: true;
}

export function databaseOption(): Option {
  return new Option(
    "--database <url>",
    `mysql://, mariadb://, postgres:// or sqlite:FILE; a password may stand in ${DATABASE_PASSWORD_VARIABLE} instead`,
  ).env(DATABASE_URL_VARIABLE);
}

export function addConnectionOptions(command: Command): Command {
  return command
    .addOption(databaseOption())
    .addOption(
      new Option(
        "--layout <layout>",
        `layout of the message table: ${Object.keys(SHIPPED_LAYOUTS).join(", ")}, or FILE.json for a table of your own`,
      ).env("ROWPOST_LAYOUT"),
    )
    .addOption(new Option("--table <name>", "the message table, NAME or SCHEMA.NAME").env("ROWPOST_TABLE"))
    .addOption(
      new Option("--states <mapping>", "what the state column holds, such as pending=待发送,sent=已发送")
        .argParser(stateMapping)
        .env("ROWPOST_STATES"),
    )
    .option("--json", "print JSON")
    .option("--verbose", "print stacks of errors");
}

/** Throws `ConfigurationError` for illegal names. */
export function layoutOf(flags: ConnectionFlags): TableLayout {
  const base = layoutOptionsOf(flags.layout ?? "default");
  const [table, schema, ...rest] = flags.table === undefined ? [] : flags.table.split(".").reverse();
  if (rest.length > 0) throw new InputError(`--table ${flags.table} has too many dots; expected NAME or SCHEMA.NAME`);
  try {
    return createLayout({
      ...base,
      ...(table === undefined ? {} : { table }),
      ...(schema === undefined ? {} : { schema }),
      ...(flags.states === undefined ? {} : { states: { ...base.states, ...flags.states } }),
    });
  } catch (error) {
    throw new InputError(`--layout, --table, --states: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function addressOf(context: CommandContext, flags: ConnectionFlags): DatabaseAddress {
  if (flags.database === undefined || flags.database === "") {
    throw new InputError(
      `--database is missing (or set ${DATABASE_URL_VARIABLE}): mysql://, mariadb://, postgres:// or sqlite:FILE`,
    );
  }
  const address = parseDatabaseUrl(flags.database, context.environment);
  keepSecret(context, address.password);
  return address;
}

export interface OpenedDatabase {
  readonly database: Database;
  readonly address: DatabaseAddress;
  readonly layout: TableLayout;
}

/**
 * Opens the database for `work` and always closes it. Common connection errors become one clear
 * line.
 */
export async function withDatabase<Result>(
  context: CommandContext,
  flags: ConnectionFlags,
  options: { readonly mayCreateFile: boolean },
  work: (opened: OpenedDatabase) => Promise<Result>,
): Promise<Result> {
  const layout = layoutOf(flags);
  const address = addressOf(context, flags);
  checkSqliteFile(address, options.mayCreateFile);
  const database = await openDatabase(address);
  try {
    return await work({ database, address, layout });
  } catch (error) {
    throw explainDatabaseError(error, address);
  } finally {
    await database.close();
  }
}

export async function withAdmin<Result>(
  context: CommandContext,
  flags: ConnectionFlags,
  work: (admin: MessageAdmin, opened: OpenedDatabase) => Promise<Result>,
): Promise<Result> {
  return await withDatabase(context, flags, { mayCreateFile: false }, async (opened) => {
    const admin = opened.database.messageAdmin({ layout: opened.layout });
    try {
      return await work(admin, opened);
    } finally {
      await admin.close();
    }
  });
}
