import { Command } from "commander";
import type { MessageState } from "rowpost/admin";
import { messageId } from "./arguments.ts";
import { addChangeOptions, type ChangeFlags, changeMessages } from "./change.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { actionOf, changingFilter } from "./filter.ts";

interface RetryFlags extends ChangeFlags {
  readonly afterId?: string;
  readonly resend?: true;
  readonly now?: true;
}

export function retryCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addChangeOptions(new Command("retry"))
    .description(
      "send failed messages again, with all their attempts; with --now also those that wait for their next attempt, with --resend also messages that are sent",
    )
    .option("--now", "pending messages that wait for their next attempt too: at once; a delay is not cut short")
    .option("--resend", "send messages again that are sent already: their consumers get them twice")
    .option(
      "--after-id <id>",
      "only messages with higher ids, to go on with a --resend that was interrupted",
      messageId,
    )
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
      finish(
        await changeMessages(context, flags, {
          kind: resend ? "resend" : "retry",
          filter: changingFilter(flags, allowed),
          now,
          afterId: flags.afterId,
          action: () => actionOf(context, flags, "retried by hand"),
          verb: "retried",
          allowed: `${allowed.join(" and ")} messages${resend ? "" : " (sent ones with --resend)"}`,
        }),
      );
    });
}
