import { Command } from "commander";
import { migrate } from "rowpost";
import { checkSqliteFile, explainDatabaseError, openDatabase } from "../database-url.ts";
import { addConnectionOptions, addressOf, type ConnectionFlags, layoutOf } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { printJson, printLine } from "./output.ts";

interface MigrateFlags extends ConnectionFlags {
  readonly print?: true;
}

export function migrateCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addConnectionOptions(new Command("migrate"))
    .description("make or update the message table and the tables beside it; can be run again at any time")
    .option("--print", "print the SQL and run nothing, for Flyway and its like")
    .addHelpText(
      "after",
      `
Examples:
  rowpost migrate --database sqlite:./app.db
  rowpost migrate --database mysql://app@127.0.0.1/shop
  rowpost migrate --database postgres://app@127.0.0.1/shop --print > V7__rowpost.sql
  rowpost migrate --database mysql://app@127.0.0.1/shop --layout t_local_message`,
    )
    .action(async (flags: MigrateFlags) => finish(await run(context, flags)));
}

async function run(context: CommandContext, flags: MigrateFlags): Promise<ExitCode> {
  const print = flags.print === true;
  const layout = layoutOf(flags);
  const address = addressOf(context, flags);
  if (!print) checkSqliteFile(address, true);
  const database = await openDatabase(address);
  try {
    const { applied, sql, warnings } = await migrate(database, { layout, print });
    if (sql !== undefined) {
      if (flags.json === true) printJson(context, { sql });
      else context.stdout.write(sql);
    } else if (flags.json === true) {
      printJson(context, { database: address.label, table: layout.table, applied, warnings });
    } else {
      for (const step of applied) printLine(context, `applied ${step}`);
      printLine(
        context,
        `${address.label}: ${applied.length === 0 ? "nothing to do, " : ""}table ${layout.table} is ready`,
      );
      for (const warning of warnings) printLine(context, `warning: ${warning}`);
    }
    return 0;
  } catch (error) {
    throw explainDatabaseError(error, address);
  } finally {
    await database.close();
  }
}
