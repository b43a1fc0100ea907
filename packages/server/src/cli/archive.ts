import { Command } from "commander";
import { addChangeOptions, type ChangeFlags, changeMessages } from "./change.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { actionOf, changingFilter } from "./filter.ts";

interface ArchiveFlags extends ChangeFlags {
  readonly delete?: true;
}

export function archiveCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addChangeOptions(new Command("archive"))
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
      const isDeletion = flags.delete === true;
      finish(
        await changeMessages(context, flags, {
          kind: isDeletion ? "delete" : "archive",
          filter: changingFilter(flags, ["sent", "consumed", "failed"]),
          action: () => actionOf(context, flags),
          verb: isDeletion ? "deleted" : "archived",
          allowed: "sent, consumed and named failed messages",
        }),
      );
    });
}
