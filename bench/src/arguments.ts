/** The command line: `bench SCENARIO --database URL [options]`, or `bench report FILE...`. */
import { parseArgs } from "node:util";

export interface BenchArguments {
  readonly scenario: string;
  readonly database: string;
  /** Undefined: each scenario's default. */
  readonly messages: number | undefined;
  /** Repetitions of each measurement. Default 3, with `--quick` 1. */
  readonly runs: number;
  /** 5,000 messages and one run: shows that everything works, not how fast. */
  readonly quick: boolean;
  readonly json: boolean;
  /** Exit code 1 if a target is missed. */
  readonly check: boolean;
  /** Only these variants; empty: all. */
  readonly variants: readonly string[];
  /** How often `relay-takeover` ends a relay. Default 10, with `--quick` 2. */
  readonly rounds: number;
  readonly broker: string;
}

export interface ReportArguments {
  readonly files: readonly string[];
  readonly output: string;
  /** Exit code 1 if a target was missed. */
  readonly check: boolean;
}

/** Invalid command line: one line, exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export const USAGE = `npm run bench -- SCENARIO --database URL [--messages N] [--runs N] [--variant NAME]... [--quick] [--check] [--json]
npm run bench -- outbox-broker --database URL --broker URL …
npm run bench -- relay-takeover --database URL [--rounds N] …
npm run bench -- report FILE... [--output bench/RESULTS.md]

URL: mysql://user@host:port  mariadb://user@host:port  postgres://user@host:port  sqlite:FILE
Each run makes a database of its own there (rowpost_bench_PID) and drops it.
--broker URL of outbox-broker: kafka:// amqp:// nats:// redis:// rocketmq:// (default rocketmq://127.0.0.1:8081)
--rounds N of relay-takeover: how often a relay is ended (default 10)
--runs N [3]   --messages N [each scenario's own]   --quick: 5,000 messages, one run   --json: one line for each result
--check: exit code 1 when a target is missed; 2 = wrong usage.`;

export function parseBenchArguments(words: readonly string[]): BenchArguments | ReportArguments {
  const { values, positionals } = parse(words);
  const [scenario, ...rest] = positionals;
  if (scenario === undefined) throw new UsageError(`name a scenario\n${USAGE}`);
  if (scenario === "report") {
    if (rest.length === 0) throw new UsageError("name the files with the JSON lines");
    return { files: rest, output: values.output ?? "bench/RESULTS.md", check: values.check ?? false };
  }
  if (rest.length > 0) throw new UsageError(`one scenario at a time, not also ${rest.join(" ")}`);
  if (values.database === undefined) throw new UsageError("--database URL is missing");
  return {
    scenario,
    database: values.database,
    messages: wholeNumber("messages", values.messages) ?? (values.quick ? 5_000 : undefined),
    runs: wholeNumber("runs", values.runs) ?? (values.quick ? 1 : 3),
    quick: values.quick ?? false,
    json: values.json ?? false,
    check: values.check ?? false,
    variants: values.variant ?? [],
    rounds: wholeNumber("rounds", values.rounds) ?? (values.quick ? 2 : 10),
    broker: values.broker ?? "rocketmq://127.0.0.1:8081",
  };
}

/** An unknown variant would measure nothing and miss no target. */
export function checkVariants(
  { scenario, variants }: Pick<BenchArguments, "scenario" | "variants">,
  known: readonly string[],
): void {
  const unknown = variants.filter((variant) => !known.includes(variant));
  if (unknown.length === 0) return;
  const there = known.length === 0 ? "it has none" : `it has ${known.join(", ")}`;
  throw new UsageError(`${scenario} has no variant ${unknown.join(", ")}; ${there}`);
}

function parse(words: readonly string[]) {
  try {
    return parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        database: { type: "string" },
        messages: { type: "string" },
        runs: { type: "string" },
        variant: { type: "string", multiple: true },
        rounds: { type: "string" },
        broker: { type: "string" },
        output: { type: "string" },
        quick: { type: "boolean" },
        check: { type: "boolean" },
        json: { type: "boolean" },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function wholeNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new UsageError(`--${name} is "${text}" but must be a whole number above 0`);
}
