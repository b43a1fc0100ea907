/** `rowpost console`: serves the HTTP API and the app over a message table, until SIGTERM. */
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { Command, Option } from "commander";
import type { Logger } from "rowpost";
import type { AlertConfig } from "../alerts/config.ts";
import { type HttpAddress, httpAddress } from "../http-address.ts";
import { listen } from "../http-listen.ts";
import { LOG_LEVELS, type LogLevel } from "../log.ts";
import { aborted, watchSignals } from "../signals.ts";
import { alertConfig, alertsOption } from "./alert.ts";
import { InputError } from "./arguments.ts";
import { addConnectionOptions, type ConnectionFlags, type OpenedDatabase, withDatabase } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { printLine } from "./output.ts";

interface ConsoleFlags extends ConnectionFlags {
  readonly listen: HttpAddress;
  readonly access?: string;
  readonly alerts?: string;
  readonly linkFile?: string;
  readonly readOnly?: true;
  readonly basePath?: string;
  readonly publicUrl?: string;
  readonly logLevel: LogLevel;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/;

/** The command; `finish` takes its exit code. */
export function consoleCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addConnectionOptions(new Command("console"))
    .description("serve the console, a web page and its HTTP API, over the message table, until SIGTERM")
    .addOption(
      new Option("--listen <address>", "PORT or HOST:PORT; only this machine unless a host is given")
        .argParser(httpAddress)
        .default(httpAddress("7070"), "127.0.0.1:7070"),
    )
    .option("--access <file>", "JSON with users and tokens; without it a one-time link for an admin is printed")
    .addOption(alertsOption())
    .option("--link-file <file>", "write the one-time link to this file, which only you can read, instead")
    .option("--read-only", "nothing can be changed, whatever the role")
    .option("--base-path <path>", "path under which a proxy serves it, such as /ops")
    .option("--public-url <url>", "address that browsers use, where a proxy stands before it")
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
    .action(async (flags: ConsoleFlags) => {
      if (!LOOPBACK.test(flags.listen.host) && flags.access === undefined) {
        throw new InputError(
          `--listen ${flags.listen.host}: other machines could reach the console; say who may log in with --access FILE`,
        );
      }
      if (flags.publicUrl !== undefined && !/^https?:\/\/[^/]/.test(flags.publicUrl))
        throw new InputError("--public-url must be an address such as https://ops.example.com");
      const alerts = await alertConfig(context, flags);
      await withDatabase(context, flags, { mayCreateFile: false }, (opened) => serve(context, flags, opened, alerts));
      finish(0);
    });
}

async function serve(
  context: CommandContext,
  flags: ConsoleFlags,
  { database, layout }: OpenedDatabase,
  alerts: AlertConfig | undefined,
): Promise<void> {
  // Loaded here: the other commands need no zod and no pino.
  const [{ createConsole }, { createOneTimeLink }, { readAccessFile }, { createLog }, { startAlerts }] =
    await Promise.all([
      import("../console.ts"),
      import("../access/link.ts"),
      import("../access/access-file.ts"),
      import("../log.ts"),
      import("../alerts/start.ts"),
    ]);
  const logger = createLog(context, { level: flags.logLevel, format: context.stderr.isTTY ? "pretty" : "json" });
  const link = flags.access === undefined ? createOneTimeLink() : undefined;
  const users = flags.access === undefined ? {} : readAccessFile(flags.access);
  await checkTables(database, layout);
  const made = createConsole({
    ...{ sources: [{ name: "main", database, layout }], access: { ...users, link }, logger },
    ...{ readOnly: flags.readOnly, basePath: flags.basePath, publicUrl: flags.publicUrl },
  });
  const running = alerts && startAlerts({ sources: [{ name: "main", database, layout }], config: alerts, logger });
  const signals = watchSignals(() => undefined);
  try {
    const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000 }, (...both) => made.node(...both));
    server.maxConnections = 1_000;
    const listening = await listen(server, flags.listen, "--listen");
    const url = flags.publicUrl ?? `http://${listening.address}${flags.basePath ?? ""}`;
    made.work();
    tellAddress(context, flags, { url: url.replace(/\/*$/, "/"), token: link?.token, logger });
    await aborted(signals.signal);
    await listening.close();
  } finally {
    if (link !== undefined && flags.linkFile !== undefined) rmSync(flags.linkFile, { force: true });
    await running?.close();
    await made.close();
    signals.end();
  }
  context.endSoon?.();
}

/** Tables that are missing are told now, and not to the first visitor. */
async function checkTables(database: OpenedDatabase["database"], layout: OpenedDatabase["layout"]): Promise<void> {
  const store = database.operations({ layout });
  try {
    await store.readSession("", 1);
  } finally {
    await store.close();
  }
}

function tellAddress(
  context: CommandContext,
  { linkFile }: ConsoleFlags,
  { logger, token, url }: { readonly url: string; readonly token: string | undefined; readonly logger: Logger },
): void {
  if (token === undefined) {
    printLine(context, `console at ${url}`);
  } else if (linkFile === undefined) {
    printLine(context, `console at ${url}#t=${token}\nThe link works once, within ten minutes, and makes you admin.`);
  } else {
    rmSync(linkFile, { force: true });
    writeFileSync(linkFile, `${url}#t=${token}\n`, { mode: 0o600, flag: "wx" });
    printLine(context, `console at ${url}; the one-time link is in ${linkFile}`);
  }
  logger.info("console runs", { url });
}
