import { Command, Option } from "commander";
import { BROKER_URL_VARIABLE, brokerForms, brokerKind, brokerSecret } from "../broker-url.ts";
import { DATABASE_URL_VARIABLE, parseDatabaseUrl } from "../database-url.ts";
import { CONSUMERS } from "../demo/consumers.ts";
import { InputError, numberFrom, wholeNumber } from "./arguments.ts";
import { type CommandContext, type ExitCode, keepSecret } from "./context.ts";

interface DemoFlags {
  readonly orders?: number;
  readonly once?: true;
  readonly rate?: number;
  readonly database?: string;
  readonly broker?: string;
  readonly keep?: true;
}

const ORDERS_ONCE = 200;
const RATE = 20;

export function demoCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return new Command("demo")
    .description("a small shop, its relay and a real consumer that often fails; watch nothing get lost")
    .option(
      "--orders <n>",
      `place this many orders (default: no end; ${ORDERS_ONCE} with --once)`,
      wholeNumber(1, 10_000_000),
    )
    .option("--once", "end when all of them have arrived; exit code 1 when one is lost or one too many")
    .option("--rate <n>", `orders a second (default: ${RATE}; with --orders as fast as it goes)`, numberFrom(0.1))
    .option("--database <url>", "another database than an embedded SQLite file; made where it is missing")
    .addOption(
      new Option("--broker <url>", `${brokerForms(Object.keys(CONSUMERS))} instead of HTTP to a consumer on this host`),
    )
    .option("--keep", "keep the SQLite file")
    .option("--verbose", "print stacks of errors")
    .addHelpText(
      "after",
      `
The last line compares the consumer's own table with the orders that were committed:
  committed=180 rolled_back=20 sent=180 consumed=180 duplicates=4 lost=0 phantom=0
Without --once the console shows the orders while it runs: its link is printed, and works once.
${DATABASE_URL_VARIABLE} and ${BROKER_URL_VARIABLE} are not used here.

Examples:
  rowpost demo
  rowpost demo --orders 200
  rowpost demo --orders 200 --once
  rowpost demo --orders 2000 --once --database mysql://root@127.0.0.1/rowpost_demo --broker rocketmq://127.0.0.1:8081`,
    )
    .action(async (flags: DemoFlags) => {
      const database = flags.database === undefined ? undefined : parseDatabaseUrl(flags.database, context.environment);
      keepSecret(context, database?.password);
      if (flags.broker !== undefined) {
        keepSecret(context, brokerSecret(flags.broker));
        if (CONSUMERS[brokerKind(flags.broker)] === undefined) {
          throw new InputError(
            `the demo counts what a consumer of its own receives: --broker takes ${brokerForms(Object.keys(CONSUMERS))}, or leave it out for HTTP`,
          );
        }
      }
      const orders = flags.orders ?? (flags.once === true ? ORDERS_ONCE : undefined);
      const { runDemo } = await import("../demo/demo.ts");
      finish(
        await runDemo(context, {
          database,
          brokerUrl: flags.broker,
          orders,
          ratePerSecond: flags.rate ?? (orders === undefined ? RATE : undefined),
          once: flags.once === true,
          keep: flags.keep === true,
        }),
      );
    });
}
