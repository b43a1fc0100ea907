/** `rowpost serve`: a relay and the console in one process, until SIGTERM. */
import { Command } from "commander";
import { addConnectionOptions, type ConnectionFlags, withDatabase } from "./connection.ts";
import { addConsoleOptions, type ConsoleFlags, checkConsoleFlags, serveConsole } from "./console-options.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { printLine } from "./output.ts";
import { addBrokerOptions, addRelayOptions, logFormatOf, planRelay, type RelayFlags } from "./relay-options.ts";

interface ServeFlags extends ConnectionFlags, RelayFlags, ConsoleFlags {}

export function serveCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const command = addConsoleOptions(addBrokerOptions(addConnectionOptions(new Command("serve")))).description(
    "run a relay and serve the console, in one process, until SIGTERM; when one of them cannot go on, both end",
  );
  return addRelayOptions(command)
    .addHelpText(
      "after",
      `
The options are those of \`rowpost relay\` and \`rowpost console\`. /metrics of the console has the
numbers of the relay too, and /readyz asks both.

Examples:
  rowpost serve --database sqlite:./app.db --broker https://example.org/hook
  rowpost serve --database mysql://app@127.0.0.1/shop --broker rocketmq://127.0.0.1:8081 --listen 0.0.0.0:7070 --access access.json`,
    )
    .action(async (flags: ServeFlags) => finish(await run(context, flags)));
}

async function run(context: CommandContext, flags: ServeFlags): Promise<ExitCode> {
  checkConsoleFlags(flags);
  const plan = planRelay(context, flags);
  const { createLog } = await import("../log.ts");
  const logger = createLog(context, { level: flags.logLevel, format: logFormatOf(context, flags) });
  // The broker stdout: writes messages to standard output.
  const say = (line: string): void =>
    plan.label.includes("stdout:") ? void context.stderr.write(`${line}\n`) : printLine(context, line);
  try {
    return await withDatabase(context, flags, { mayCreateFile: false }, (opened) =>
      plan.run(opened, {
        logger,
        once: undefined,
        beside: async ({ alerts, metrics, relay }) => {
          const { alertChannels } = await import("../alerts/test-notice.ts");
          return await serveConsole(flags, opened, {
            logger,
            say,
            metrics,
            isReady: () => relay.health().ready,
            alertChannels: alerts && alertChannels(alerts),
          });
        },
      }),
    );
  } finally {
    context.endSoon?.();
  }
}

export const SERVE_CHINESE: Readonly<Record<string, string>> = {
  "run a relay and serve the console, in one process, until SIGTERM; when one of them cannot go on, both end":
    "在一个进程里运行 relay 并提供控制台，直到收到 SIGTERM；其中一个无法继续时，两个都结束",
  "The options are those of `rowpost relay` and `rowpost console`. /metrics of the console has the":
    "选项与 `rowpost relay` 和 `rowpost console` 的相同。控制台的 /metrics",
  "numbers of the relay too, and /readyz asks both.": "也包含 relay 的数字，/readyz 两者都问。",
  "# for /metrics alone": "# 只能读 /metrics",
};
