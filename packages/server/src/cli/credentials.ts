/** `rowpost user hash` and `rowpost token create`: entries of the `console --access` file. */
import { text } from "node:stream/consumers";
import { Command, InvalidArgumentError, Option } from "commander";
import { ROLES, type Role } from "../http/route.ts";
import { duration, InputError, listOf } from "./arguments.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { printJson, printLine } from "./output.ts";

interface UserFlags {
  readonly name: string;
  readonly topics?: readonly string[];
  readonly role: Role;
}

interface TokenFlags extends Pick<UserFlags, "name" | "topics"> {
  readonly role: Role | "metrics";
  readonly expires?: number;
}

const PASSWORD_VARIABLE = "ROWPOST_NEW_PASSWORD";
const LEAST_LENGTH = 10;

function addWho(command: Command, roles: readonly string[]): Command {
  return command
    .requiredOption("--name <name>", "who it is, in the audit too")
    .addOption(new Option("--role <role>", "what they may do").choices([...roles]).default("reader"))
    .option(
      "--topics <topics>",
      "what it reaches, several with commas: orders, or orders.* (default: all)",
      listOf(topic),
    );
}

function topic(text: string): string {
  if (text === "") throw new InvalidArgumentError("A topic is empty.");
  return text;
}

export function userCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const hash = addWho(new Command("hash"), ROLES)
    .description("print a user for the file of `console --access`; the password comes from standard input")
    .addHelpText(
      "after",
      `
The password may stand in ${PASSWORD_VARIABLE} instead.

Examples:
  rowpost user hash --name ann --role operator < password.txt
  rowpost user hash --name bob --role operator --topics 'orders.*,stock' < password.txt`,
    )
    .action(async ({ name, role, topics }: UserFlags) => {
      const given = context.environment[PASSWORD_VARIABLE] ?? (await text(process.stdin));
      const password = given.replace(/\r?\n$/, "");
      if (password.length < LEAST_LENGTH)
        throw new InputError(`the password has fewer than ${LEAST_LENGTH} characters`);
      const { hashPassword } = await import("../access/secrets.ts");
      printJson(context, { name, role, ...(topics && { topics }), password: await hashPassword(password) });
      finish(0);
    });
  return new Command("user").description("users of the console").addCommand(hash);
}

export function tokenCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const create = addWho(new Command("create"), [...ROLES, "metrics"])
    .description("make a token for programs, and print what stands in the file of `console --access`")
    .addOption(new Option("--expires <duration>", "not valid after this time, such as 90d").argParser(duration))
    .addHelpText(
      "after",
      `
Examples:
  rowpost token create --name deploy --role reader --expires 90d
  rowpost token create --name prometheus --role metrics     # for /metrics alone`,
    )
    .action(async ({ expires, name, role, topics }: TokenFlags) => {
      const { randomSecret, sha256 } = await import("../access/secrets.ts");
      const token = `rp_${randomSecret()}`;
      const until = expires === undefined ? {} : { expires: new Date(Date.now() + expires).toISOString() };
      printLine(context, `${token}\nThe token is shown once. In the file of --access, under tokens:`);
      printJson(context, { name, role, ...(topics && { topics }), hash: sha256(token), ...until });
      finish(0);
    });
  return new Command("token").description("tokens of programs that use the console's API").addCommand(create);
}
