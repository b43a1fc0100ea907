/** `rowpost archive`: moves finished messages into the archive table, or deletes them. */
import { Command } from "commander";
import { changeInBatches, printChange } from "./change.ts";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import {
  type ActionFlags,
  actionOf,
  addActionOptions,
  addFilterOptions,
  changingFilter,
  type FilterFlags,
} from "./filter.ts";

interface ArchiveFlags extends ConnectionFlags, FilterFlags, ActionFlags {
  readonly delete?: true;
}

/** The command; `finish` takes its exit code. */
export function archiveCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addActionOptions(addFilterOptions(addConnectionOptions(new Command("archive"))))
    .description("move sent and consumed messages into the archive table; failed ones only with --state failed")
    .option("--delete", "delete them instead: they are gone")
    .addHelpText(
      "after",
      `
Examples:
  rowpost archive --database sqlite:./app.db --before 7d --reason "older than a week"
  rowpost archive --database mysql://app@127.0.0.1/shop --topic orders --before 2026-11-01 --reason "monthly"
  rowpost archive --database mysql://app@127.0.0.1/shop --state failed --topic typo --delete --reason "topic never existed"`,
    )
    .action(async (flags: ArchiveFlags) => {
      const filter = changingFilter(flags, { allowed: ["sent", "consumed", "failed"], usual: ["sent", "consumed"] });
      const action = actionOf(context, flags);
      const mode = flags.delete === true ? "delete" : "archive";
      const verb = mode === "delete" ? "deleted" : "archived";
      const report = await withAdmin(context, flags, (admin) =>
        changeInBatches(context, { limit: flags.limit, verb }, (part) =>
          admin.remove({ filter, mode, action, ...part }),
        ),
      );
      finish(
        printChange(
          context,
          { ...report, mode },
          {
            verb,
            json: flags.json === true,
            allowed: "sent, consumed and named failed messages",
          },
        ),
      );
    });
}
