/** `rowpost adopt TABLE`: looks at a message table that is there, and describes it. */
import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError, Option } from "commander";
import type { MessageState } from "rowpost/admin";
import type { Adoption } from "../adopt/adopt.ts";
import type { Property } from "../adopt/mapping.ts";
import { KNOWN } from "../adopt/synonyms.ts";
import { adoptLine } from "./adopt-chinese.ts";
import { InputError, stateMapping } from "./arguments.ts";
import { databaseOption, withDatabase } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { isChinese } from "./locale.ts";
import { printJson, printLine, withoutControls } from "./output.ts";

interface AdoptFlags {
  readonly database?: string;
  readonly state?: Partial<Record<MessageState, string | number>>;
  readonly column?: ReadonlyMap<Property, string>;
  readonly clock?: "utc" | "server";
  readonly write?: string;
  readonly json?: true;
}

/** The command; `finish` takes its exit code. */
export function adoptCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return new Command("adopt")
    .description("look at a message table that is there already, and write the layout that describes it")
    .argument("<table>", "the table, NAME or SCHEMA.NAME")
    .addOption(databaseOption())
    .addOption(
      new Option("--state <mapping>", "what a value means, such as pending=0; may be given several times").argParser(
        states,
      ),
    )
    .addOption(
      new Option(
        "--column <mapping>",
        "which column is which, such as topic=channel; may be given several times",
      ).argParser(columns),
    )
    .addOption(new Option("--clock <clock>", "whose time the instants are").choices(["utc", "server"]))
    .option("--write <file>", "write the layout to this file; nothing else is written, ever")
    .option("--json", "print JSON")
    .option("--verbose", "print stacks of errors")
    .addHelpText(
      "after",
      `
It reads the catalog and the newest 10,000 rows. What the values of the state column mean it never
guesses: it lists them with their counts, and ends with exit code 2 until --state says it.

Exit codes: 0 ready, 1 something must be mended first, 2 something must be said first.

Examples:
  rowpost adopt app_event --database mysql://app@127.0.0.1/shop
  rowpost adopt app_event --database mysql://app@127.0.0.1/shop --state pending=0 --state sent=2 --write app_event.json
  rowpost relay --once --broker stdout: --database mysql://app@127.0.0.1/shop --layout app_event.json`,
    )
    .action(async (name: string, flags: AdoptFlags) => {
      const [table = "", schema, ...rest] = name.split(".").reverse();
      if (rest.length > 0) throw new InputError(`${name} has too many dots; expected NAME or SCHEMA.NAME`);
      const { adopt } = await import("../adopt/adopt.ts");
      const adoption = await withDatabase(context, databaseOnly(flags), { mayCreateFile: false }, ({ database }) =>
        adopt(database, {
          ...{ table, schema, states: flags.state ?? {}, columns: flags.column ?? new Map(), clock: flags.clock },
          file: flags.write ?? `${table}.json`,
        }),
      );
      if (flags.write !== undefined && adoption.layout !== undefined)
        writeFileSync(flags.write, `${JSON.stringify(adoption.layout, undefined, 2)}\n`);
      if (flags.json === true) printJson(context, adoption);
      else {
        const inLanguage = isChinese(context.environment) ? adoptLine : (line: string) => line;
        printLine(context, reportOf(adoption, flags.write, inLanguage));
      }
      finish(adoption.questions.length > 0 ? 2 : adoption.mustFix.length > 0 ? 1 : 0);
    });
}

function databaseOnly({ database }: AdoptFlags): { readonly database?: string } {
  return database === undefined ? {} : { database };
}

function states(text: string, before: AdoptFlags["state"] = {}): NonNullable<AdoptFlags["state"]> {
  return { ...before, ...stateMapping(text) };
}

function columns(text: string, before: ReadonlyMap<Property, string> = new Map()): ReadonlyMap<Property, string> {
  const [property = "", column = "", ...rest] = text.split("=").map((part) => part.trim());
  const known = KNOWN.find((each) => each.property === property);
  if (known === undefined || column === "" || rest.length > 0)
    throw new InvalidArgumentError(
      `"${text}" is not NAME=COLUMN; names: ${KNOWN.map((each) => each.property).join(", ")}.`,
    );
  return new Map([...before, [known.property, column]]);
}

function reportOf(
  { layout, ...found }: Adoption,
  written: string | undefined,
  inLanguage: (line: string) => string,
): string {
  const clean = (line: string): string => inLanguage(withoutControls(line));
  const part = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : [`${clean(title)}\n${lines.map((line) => `  ${clean(line)}`).join("\n")}`];
  const layoutText = layout === undefined ? [] : JSON.stringify(layout, undefined, 2).split("\n");
  return [
    ...part(`${found.table} on ${found.server}: which column is which`, found.columns),
    ...part("kept", found.features.kept),
    ...part("lost", found.features.lost),
    ...part(`values of the state column (newest ${found.rows} rows)`, found.values),
    ...part("must be said first", found.questions),
    ...part("must be mended first", found.mustFix),
    ...part("good to have", found.advice),
    ...part("to know", found.notes),
    ...part("how a relay would look for messages", found.explain),
    ...part(
      written === undefined ? "layout (--write FILE.json writes it)" : `layout, written to ${written}`,
      layoutText,
    ),
    ...part("taking it over", layout === undefined ? [] : found.plan),
  ].join("\n\n");
}
