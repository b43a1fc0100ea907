import { Command, Option } from "commander";
import { duration, InputError } from "./arguments.ts";
import { addConnectionOptions, withDatabase } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { addBrokerOptions, addRelayOptions, logFormatOf, planRelay, type RelayFlags } from "./relay-options.ts";

interface OnceFlags extends RelayFlags {
  readonly once?: true;
  readonly timeLimit: number;
  readonly untilEmpty?: true;
}

export function relayCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const command = addBrokerOptions(addConnectionOptions(new Command("relay")))
    .description("publish what waits in the message table to a broker, until SIGTERM; several relays share the work")
    .option(
      "--once",
      "send what is due and end; exit code 1 when not all of it could be sent, 3 when messages wait for their next attempt or have failed",
    )
    .option("--until-empty", "with --once: wait for messages that wait for their next attempt, within --time-limit")
    .addOption(
      new Option("--time-limit <duration>", "with --once: end after this time in any case")
        .argParser(duration)
        .default(600_000, "10m"),
    );
  return addRelayOptions(command)
    .addHelpText(
      "after",
      `
Durations are written 500ms, 10s, 5m, 6h, 7d. Logs go to standard error.

Examples:
  rowpost relay --database mysql://app@127.0.0.1/shop --broker rocketmq://127.0.0.1:8081
  rowpost relay --database sqlite:./app.db --broker https://example.org/hook --max-attempts 10 --on-sent archive --keep 7d
  rowpost relay --database postgres://app@127.0.0.1/shop --broker stdout: --once      # for cron, or to look at what waits
  rowpost relay --database mysql://app@127.0.0.1/shop --broker rocketmq://127.0.0.1:8081 --route 'hooks.*=https://example.org/hook#partner'
                     # the rest goes to RocketMQ; #partner: the secret of this URL stands in ROWPOST_HTTP_SECRET_PARTNER
  rowpost relay --database mysql://app@127.0.0.1/shop --layout t_local_message --broker rocketmq://127.0.0.1:8081`,
    )
    .action(async (flags: OnceFlags) => finish(await run(context, flags)));
}

async function run(context: CommandContext, flags: OnceFlags): Promise<ExitCode> {
  const plan = planRelay(context, flags);
  if (flags.untilEmpty === true && flags.once !== true)
    throw new InputError("--until-empty does nothing without --once");
  if (flags.alerts !== undefined && flags.once === true)
    throw new InputError("--alerts is for a relay that goes on: rowpost alert check --once is for cron");
  const { createLog } = await import("../log.ts");
  try {
    return await withDatabase(context, flags, { mayCreateFile: false }, async (opened) => {
      const logger = createLog(context, { level: flags.logLevel, format: logFormatOf(context, flags) });
      const once =
        flags.once === true ? { timeoutMs: flags.timeLimit, untilEmpty: flags.untilEmpty === true } : undefined;
      return await plan.run(opened, { once, logger });
    });
  } finally {
    // A message counts as sent only when standard output has taken it, so the rest is sent again.
    context.endSoon?.();
  }
}
