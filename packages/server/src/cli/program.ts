/** The program `rowpost`: its commands, and errors as one line and an exit code. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { isChinese } from "../language.ts";
import { adoptCommand } from "./adopt.ts";
import { alertCommand } from "./alert.ts";
import { archiveCommand } from "./archive.ts";
import { speakChinese } from "./chinese.ts";
import { confirmCommand } from "./confirm.ts";
import { consoleCommand } from "./console.ts";
import { type CommandContext, createContext, type Environment, type ExitCode, redact } from "./context.ts";
import { copyCommand } from "./copy.ts";
import { tokenCommand, userCommand } from "./credentials.ts";
import { demoCommand } from "./demo.ts";
import { doctorCommand } from "./doctor.ts";
import { reportFailure } from "./failure.ts";
import { listCommand } from "./list.ts";
import { migrateCommand } from "./migrate.ts";
import { queueCommand } from "./queue/queue.ts";
import { reconcileCommand } from "./reconcile.ts";
import { relayCommand } from "./relay.ts";
import { resetBackoffCommand } from "./reset-backoff.ts";
import { resumeCommand } from "./resume.ts";
import { retryCommand } from "./retry.ts";
import { serveCommand } from "./serve.ts";
import { showCommand } from "./show.ts";
import { statusCommand } from "./status.ts";
import { suspendCommand } from "./suspend.ts";

/** Runs one command line. Never rejects. */
export async function runCommandLine(args: readonly string[], environment: Environment): Promise<ExitCode> {
  const context = createContext(environment);
  let code: ExitCode = 0;
  const program = createProgram(context, (exitCode) => {
    code = exitCode;
  });
  if (args.length === 0) {
    program.outputHelp({ error: true });
    return 2;
  }
  try {
    await program.parseAsync([...args], { from: "user" });
    return code;
  } catch (error) {
    return reportFailure(context, error, args.includes("--verbose"));
  }
}

export function createProgram(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const program = new Command("rowpost")
    .description("The local message table (本地消息表): relay its messages to a broker, and look after them.")
    .version(packageVersion(), "-V, --version", "print the version")
    .helpCommand("help [command]", "show the help of a command")
    .addHelpText(
      "after",
      `
Examples:
  rowpost demo --orders 200 --once
  rowpost migrate --database sqlite:./app.db
  rowpost relay --database mysql://app@127.0.0.1/shop --broker rocketmq://127.0.0.1:8081

Exit codes: 0 done, 1 it could not be done or not all of it, 2 wrong input, 3 relay --once: some wait, reconcile: some do not add up, doctor: warnings.`,
    );
  const commands = [
    demoCommand,
    migrateCommand,
    relayCommand,
    serveCommand,
    statusCommand,
    listCommand,
    showCommand,
    retryCommand,
    copyCommand,
    resetBackoffCommand,
    suspendCommand,
    resumeCommand,
    confirmCommand,
    reconcileCommand,
    doctorCommand,
    adoptCommand,
    alertCommand,
    archiveCommand,
    consoleCommand,
    userCommand,
    tokenCommand,
    queueCommand,
  ];
  for (const make of commands) program.addCommand(make(context, finish));
  for (const command of [program, ...commandsOf(program)]) {
    command.exitOverride().configureOutput({
      writeOut: (text) => void context.stdout.write(text),
      writeErr: (text) => void context.stderr.write(text),
      // One line, as for every invalid input; commander would put its suggestion on a second one.
      outputError: (text, write) => write(redact(context, wrongInput(text, command))),
    });
    if (isChinese(context.environment)) speakChinese(command, (text) => void context.stdout.write(text));
  }
  return program;
}

export function commandsOf(command: Command): Command[] {
  return command.commands.flatMap((each) => [each, ...commandsOf(each)]);
}

export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/**
 * commander's `error: …` as one of our lines, with a hint to the help. It may repeat a URL whose
 * password was not yet registered.
 */
function wrongInput(text: string, command: Command): string {
  const help = `${pathOf(command)} --help`;
  const line = text
    .replace(/^error: /, "")
    .trim()
    .replace(/\s*\n\s*/g, " ")
    .replace(/\/\/.*@/g, "//***@");
  return `rowpost: ${line} (${help})\n`;
}

function packageVersion(): string {
  // src/cli and dist/cli are equally deep.
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const hasVersion = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return hasVersion ? String(manifest.version) : "unknown";
}
