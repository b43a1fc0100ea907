/** `rowpost retry`: sends failed messages again. */
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

interface RetryFlags extends ConnectionFlags, FilterFlags, ActionFlags {
  readonly resend?: true;
}

/** The command; `finish` takes its exit code. */
export function retryCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addActionOptions(addFilterOptions(addConnectionOptions(new Command("retry"))))
    .description("send failed messages again, with all their attempts; with --resend also messages that are sent")
    .option("--resend", "send messages again that are sent already: their consumers get them twice")
    .addHelpText(
      "after",
      `
Examples:
  rowpost retry --database sqlite:./app.db --topic orders
  rowpost retry --database mysql://app@127.0.0.1/shop --id 4711,4712 --reason "topic was missing"
  rowpost retry --database mysql://app@127.0.0.1/shop --resend --type order.created --key 20261121-0042`,
    )
    .action(async (flags: RetryFlags) => {
      const resend = flags.resend === true;
      const filter = changingFilter(flags, { allowed: resend ? ["failed", "sent"] : ["failed"] });
      const action = actionOf(context, flags, "retried by hand");
      const report = await withAdmin(context, flags, (admin) =>
        changeInBatches(context, { limit: flags.limit, verb: "retried" }, (part) =>
          admin.retry({ filter, action, resend, ...part }),
        ),
      );
      finish(
        printChange(context, report, {
          verb: "retried",
          json: flags.json === true,
          allowed: resend ? "failed and sent messages" : "failed messages (sent ones with --resend)",
        }),
      );
    });
}
