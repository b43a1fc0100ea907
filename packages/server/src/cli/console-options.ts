import { rmSync, writeFileSync } from "node:fs";
import { type Command, Option } from "commander";
import type { Logger } from "rowpost";
import type { ConsoleOptions } from "../console.ts";
import { type HttpAddress, httpAddress } from "../http-address.ts";
import { InputError } from "./arguments.ts";
import type { OpenedDatabase } from "./connection.ts";

/** Options of {@link addConsoleOptions}, as commander hands them over. */
export interface ConsoleFlags {
  readonly listen: HttpAddress;
  readonly access?: string;
  readonly linkFile?: string;
  readonly readOnly?: true;
  readonly basePath?: string;
  readonly publicUrl?: string;
}

export interface ServedConsole {
  readonly failed: AbortSignal;
  /** Takes no more requests; a running change of many messages stops after its batch. */
  close(): Promise<void>;
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|::1)$/;

export function addConsoleOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--listen <address>", "PORT or HOST:PORT; only this machine unless a host is given")
        .argParser(httpAddress)
        .default(httpAddress("7070"), "127.0.0.1:7070"),
    )
    .option("--access <file>", "JSON with users and tokens; without it a one-time link for an admin is printed")
    .option("--link-file <file>", "write the one-time link to this file, which only you can read, instead")
    .option("--read-only", "nothing can be changed, whatever the role")
    .option("--base-path <path>", "path under which a proxy serves it, such as /ops")
    .option("--public-url <url>", "address that browsers use, where a proxy stands before it");
}

/** Throws {@link InputError} for options that open the console to strangers, or cannot work. */
export function checkConsoleFlags({ access, listen, publicUrl }: ConsoleFlags): void {
  if (!LOOPBACK.test(listen.host) && access === undefined) {
    throw new InputError(
      `--listen ${listen.host}: other machines could reach the console; say who may log in with --access FILE`,
    );
  }
  if (publicUrl !== undefined && !/^https?:\/\/[^/]/.test(publicUrl))
    throw new InputError("--public-url must be an address such as https://ops.example.com");
}

/**
 * Starts the console and prints its address by `say`. Rejects, with nothing open, if the port is
 * taken, the access file is wrong or tables are missing.
 */
export async function serveConsole(
  flags: ConsoleFlags,
  { database, layout }: OpenedDatabase,
  parts: Pick<ConsoleOptions, "metrics" | "isReady" | "alertChannels"> & {
    readonly logger: Logger;
    readonly say: (line: string) => void;
  },
): Promise<ServedConsole> {
  // Loaded here, because the other commands need no zod.
  const [{ createConsole }, { createOneTimeLink }, { readAccessFile }, { listenForConsole }] = await Promise.all([
    import("../console.ts"),
    import("../access/link.ts"),
    import("../access/access-file.ts"),
    import("../console-server.ts"),
  ]);
  const { logger, say, ...shared } = parts;
  const link = flags.access === undefined ? createOneTimeLink() : undefined;
  const users = flags.access === undefined ? {} : readAccessFile(flags.access);
  await checkTables(database, layout);
  const made = createConsole({
    sources: [{ name: "main", database, layout }],
    access: { ...users, link },
    logger,
    ...shared,
    readOnly: flags.readOnly,
    basePath: flags.basePath,
    publicUrl: flags.publicUrl,
  });
  try {
    const served = await listenForConsole(made, flags.listen);
    const url = (flags.publicUrl ?? `http://${served.address}${flags.basePath ?? ""}`).replace(/\/*$/, "/");
    tellAddress(flags, { url, token: link?.token, say });
    logger.info("console runs", { url });
    return {
      failed: served.failed,
      async close() {
        await served.close();
        if (link !== undefined && flags.linkFile !== undefined) rmSync(flags.linkFile, { force: true });
      },
    };
  } catch (error) {
    await made.close();
    throw error;
  }
}

/** Reports missing tables now instead of to the first visitor. */
async function checkTables(database: OpenedDatabase["database"], layout: OpenedDatabase["layout"]): Promise<void> {
  const store = database.operations({ layout });
  try {
    await store.readSession("", 1);
  } finally {
    await store.close();
  }
}

function tellAddress(
  { linkFile }: ConsoleFlags,
  told: { readonly url: string; readonly token: string | undefined; readonly say: (line: string) => void },
): void {
  const { say, token, url } = told;
  if (token === undefined) {
    say(`console at ${url}`);
  } else if (linkFile === undefined) {
    say(`console at ${url}#t=${token}\nThe link works once, within ten minutes, and makes you admin.`);
  } else {
    rmSync(linkFile, { force: true });
    writeFileSync(linkFile, `${url}#t=${token}\n`, { mode: 0o600, flag: "wx" });
    say(`console at ${url}; the one-time link is in ${linkFile}`);
  }
}
