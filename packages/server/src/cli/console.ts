/** `rowpost console`: serves the HTTP API and the app over a message table until SIGTERM. */
import { Command, Option } from "commander";
import { createMetricsRegistry } from "rowpost";
import type { AlertConfig } from "../alerts/config.ts";
import { LOG_LEVELS, type LogLevel } from "../log.ts";
import { aborted, watchSignals } from "../signals.ts";
import { alertConfig, alertsOption } from "./alert.ts";
import { addConnectionOptions, type ConnectionFlags, type OpenedDatabase, withDatabase } from "./connection.ts";
import { addConsoleOptions, type ConsoleFlags, checkConsoleFlags, serveConsole } from "./console-options.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { printLine } from "./output.ts";

interface CommandFlags extends ConnectionFlags, ConsoleFlags {
  readonly alerts?: string;
  readonly logLevel: LogLevel;
}

export function consoleCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addConsoleOptions(addConnectionOptions(new Command("console")))
    .description("serve the console, a web page and its HTTP API, over the message table, until SIGTERM")
    .addOption(alertsOption())
    .addOption(
      new Option("--log-level <level>", "what is logged to standard error").choices([...LOG_LEVELS]).default("warn"),
    )
    .addHelpText(
      "after",
      `
Another host than this machine needs --access: \`rowpost user hash\` and \`rowpost token create\` make
what stands in it.

Examples:
  rowpost console --database sqlite:./app.db
  rowpost console --database mysql://app@127.0.0.1/shop --listen 0.0.0.0:7070 --access access.json`,
    )
    .action(async (flags: CommandFlags) => {
      checkConsoleFlags(flags);
      const alerts = await alertConfig(context, flags);
      await withDatabase(context, flags, { mayCreateFile: false }, (opened) => run(context, flags, opened, alerts));
      finish(0);
    });
}

async function run(
  context: CommandContext,
  flags: CommandFlags,
  opened: OpenedDatabase,
  config: AlertConfig | undefined,
): Promise<void> {
  const [{ createLog }, { startAlerts }, { alertChannels }] = await Promise.all([
    import("../log.ts"),
    import("../alerts/start.ts"),
    import("../alerts/test-notice.ts"),
  ]);
  const metrics = createMetricsRegistry();
  const logger = createLog(context, { level: flags.logLevel, format: context.stderr.isTTY ? "pretty" : "json" });
  const signals = watchSignals(() => undefined);
  try {
    const served = await serveConsole(flags, opened, {
      logger,
      metrics,
      say: (line) => printLine(context, line),
      alertChannels: config && alertChannels(config),
    });
    const alerts = config && startAlerts({ sources: [{ name: "main", ...opened }], config, logger, metrics });
    await aborted(AbortSignal.any([signals.signal, served.failed]));
    await alerts?.close();
    await served.close();
    served.failed.throwIfAborted();
  } finally {
    signals.end();
  }
  context.endSoon?.();
}
