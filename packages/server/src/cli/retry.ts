/** `rowpost retry`: sends failed messages again. */
import { Command } from "commander";
import type { MessageState } from "rowpost";
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
  readonly now?: true;
}

/** The command; `finish` takes its exit code. */
export function retryCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addActionOptions(addFilterOptions(addConnectionOptions(new Command("retry"))))
    .description(
      "send failed messages again, with all their attempts; with --now also those that wait for their next attempt, with --resend also messages that are sent",
    )
    .option("--now", "pending messages that wait for their next attempt too: at once; a delay is not cut short")
    .option("--resend", "send messages again that are sent already: their consumers get them twice")
    .addHelpText(
      "after",
      `
Examples:
  rowpost retry --database sqlite:./app.db --topic orders
  rowpost retry --database mysql://app@127.0.0.1/shop --id 4711,4712 --reason "topic was missing"
  rowpost retry --database mysql://app@127.0.0.1/shop --topic orders --now
  rowpost retry --database mysql://app@127.0.0.1/shop --resend --type order.created --key 20261121-0042`,
    )
    .action(async (flags: RetryFlags) => {
      const resend = flags.resend === true;
      const now = flags.now === true;
      const allowed: MessageState[] = [
        "failed",
        ...(resend ? (["sent"] as const) : []),
        ...(now ? (["pending"] as const) : []),
      ];
      const filter = changingFilter(flags, { allowed });
      const action = actionOf(context, flags, "retried by hand");
      const report = await withAdmin(context, flags, (admin) =>
        changeInBatches(context, { limit: flags.limit, verb: "retried" }, (part) =>
          admin.retry({ filter, action, resend, now, ...part }),
        ),
      );
      finish(
        printChange(context, report, {
          verb: "retried",
          json: flags.json === true,
          allowed: `${allowed.join(" and ")} messages${resend ? "" : " (sent ones with --resend)"}`,
        }),
      );
    });
}
