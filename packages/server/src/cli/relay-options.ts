/** Options that `rowpost relay` and `rowpost serve` share, and the relay that they mean. */
import { type Command, Option } from "commander";
import type { Broker, Logger, RelayMessageType, RelayOptions, RetentionOptions, RetryPolicy } from "rowpost";
import { collectRoutes, planBrokers, ROUTES_VARIABLE } from "../broker-routes.ts";
import { BROKER_URL_VARIABLE, brokerForms } from "../broker-url.ts";
import { CONFIRM_TOKEN_VARIABLE } from "../confirm-endpoint.ts";
import type { DaemonOptions } from "../daemon.ts";
import { type HttpAddress, httpAddress } from "../http-address.ts";
import { LOG_LEVELS, type LogLevel } from "../log.ts";
import { alertConfig, alertsOption } from "./alert.ts";
import { duration, InputError, numberFrom, wholeNumber } from "./arguments.ts";
import {
  addConsumersOption,
  addTopicOptions,
  type ConsumersByType,
  collectConfirmed,
  confirmedTypes,
  confirmToken,
  type TopicFlags,
  topicSource,
} from "./confirm-options.ts";
import type { ConnectionFlags, OpenedDatabase } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";

/** Options of {@link addBrokerOptions} and {@link addRelayOptions}, as commander gives them. */
export interface RelayFlags extends ConnectionFlags, TopicFlags {
  readonly broker?: string;
  readonly route?: readonly string[];
  readonly http?: HttpAddress;
  readonly alerts?: string;
  readonly batchSize?: number;
  readonly window?: number;
  readonly publishTimeout?: number;
  readonly lease?: number;
  readonly heartbeat?: number;
  readonly sendingMark?: "on" | "off";
  readonly onFailed?: "block" | "skip";
  readonly onSent?: "keep" | "archive" | "delete";
  readonly keep?: number;
  readonly archiveFor?: number;
  readonly maxAttempts?: number;
  readonly backoffBase?: number;
  readonly backoffFactor?: number;
  readonly backoffMax?: number;
  readonly slowRetryEvery?: number;
  readonly slowRetryFor?: number;
  readonly pollMin?: number;
  readonly pollMax?: number;
  readonly drainTimeout?: number;
  readonly confirm?: readonly RelayMessageType[];
  readonly consumers?: ConsumersByType;
  readonly label?: string;
  readonly force?: true;
  readonly logLevel: LogLevel;
  readonly logFormat?: "json" | "pretty";
}

/** Adds `--broker` and `--route`. */
export function addBrokerOptions(command: Command): Command {
  return command
    .addOption(new Option("--broker <url>", brokerForms()).env(BROKER_URL_VARIABLE))
    .addOption(
      new Option(
        "--route <pattern=url>",
        "topics that go to another broker, such as 'orders.*=https://…'; may be given several times, the first match wins; without --broker the relay leaves all other topics to other relays",
      )
        .argParser(collectRoutes)
        .env(ROUTES_VARIABLE),
    );
}

/** Adds how a relay works, what becomes of its messages, and where it tells of itself. */
export function addRelayOptions(command: Command): Command {
  addFlowOptions(command);
  addFailureOptions(command);
  addConsumersOption(command);
  addTopicOptions(command);
  return command
    .option(
      "--http <address>",
      `serve /metrics, /livez and /readyz at PORT or HOST:PORT (default host: 127.0.0.1); with ${CONFIRM_TOKEN_VARIABLE} also POST /confirmations`,
      httpAddress,
    )
    .addOption(alertsOption())
    .option("--force", "publish to memory: or stdout: although another relay works on this table")
    .option("--label <name>", "name of this relay in `rowpost status` (default: host:pid)")
    .addOption(new Option("--log-level <level>", "least level to log").choices([...LOG_LEVELS]).default("info"))
    .addOption(new Option("--log-format <format>", "json, or pretty on a terminal").choices(["json", "pretty"]));
}

function addFlowOptions(command: Command): void {
  command
    .option("--batch-size <n>", "messages of one scan and claim (default: 500)", wholeNumber(1, 10_000))
    .option("--window <n>", "messages of one topic in flight at most (default: 4 batches)", wholeNumber(1, 100_000))
    .option("--publish-timeout <duration>", "a publish without an answer is given up (default: 10s)", duration)
    .option("--lease <duration>", "how long a dead relay keeps its shards (default: 30s)", duration)
    .option("--heartbeat <duration>", "interval of lease renewals (default: 2s)", duration)
    .addOption(
      new Option("--sending-mark <mark>", "off: faster, rows stay pending while they are sent").choices(["on", "off"]),
    )
    .option("--poll-min <duration>", "shortest wait between looks at the table (default: 10ms)", duration)
    .option("--poll-max <duration>", "longest wait when nothing happens (default: 250ms)", duration)
    .option(
      "--drain-timeout <duration>",
      "time that a stop gives to what is in flight (default: publish timeout + 5s)",
      duration,
    );
}

function addFailureOptions(command: Command): void {
  command
    .option("--max-attempts <n>", "attempts until a message is failed (default: 16)", wholeNumber(1, 10_000))
    .option("--backoff-base <duration>", "longest wait after the first failure (default: 1s)", duration)
    .option("--backoff-factor <number>", "each longest wait is the one before times this (default: 2)", numberFrom(1))
    .option("--backoff-max <duration>", "no wait is longer (default: 10m)", duration)
    .option(
      "--slow-retry-every <duration>",
      "failed messages are tried again this often; 0: never (default: 6h)",
      duration,
    )
    .option("--slow-retry-for <duration>", "until they are this old (default: 7d)", duration)
    .addOption(
      new Option(
        "--on-failed <action>",
        "what a failed message does to later ones of its ordering key (default: block)",
      ).choices(["block", "skip"]),
    )
    .addOption(
      new Option("--on-sent <action>", "what happens to sent messages (default: keep)").choices([
        "keep",
        "archive",
        "delete",
      ]),
    )
    .option("--keep <duration>", "with --on-sent archive or delete: only after this time (default: 0)", duration)
    .addOption(
      new Option(
        "--confirm <type=duration>",
        "consumers confirm messages of this type within this time, else they are sent again; with :fail or :alert at its end they fail, or are only told of; may be given several times",
      ).argParser(collectConfirmed),
    )
    .option("--archive-for <duration>", "delete archived messages after this time (default: never)", duration);
}

/** A relay that the options mean; nothing is opened yet. */
export interface RelayPlan {
  /** Runs it on this database, and closes its broker. */
  run(
    opened: OpenedDatabase,
    how: Pick<DaemonOptions, "once" | "beside"> & { readonly logger: Logger },
  ): Promise<ExitCode>;
  /** Of its brokers, for people; without secrets. */
  readonly label: string;
}

/** Throws {@link InputError} for options that cannot work, before anything is opened. */
export function planRelay(context: CommandContext, flags: RelayFlags): RelayPlan {
  const missing = `--broker is missing (or set ${BROKER_URL_VARIABLE}): ${brokerForms()}`;
  const brokers = planBrokers(context, flags, missing);
  const settings = settingsOf(flags);
  const token = flags.http === undefined ? undefined : confirmToken(context);
  const source = topicSource(context, flags);
  if (flags.consumers !== undefined && token === undefined && source === undefined) {
    throw new InputError(
      `--consumers is for confirmations: it needs --confirmations, or --http and a token in ${CONFIRM_TOKEN_VARIABLE}`,
    );
  }
  return {
    label: brokers.label,
    async run(opened, { logger, ...how }) {
      const { database, address, layout } = opened;
      const alerts = await alertConfig(context, flags);
      const { runRelay } = await import("../daemon.ts");
      const broker = await brokers.open(database);
      try {
        if (flags.force !== true) await refuseToSwallow(broker, opened);
        return await runRelay({
          ...how,
          relay: { ...settings, database, broker, layout, logger },
          databaseLabel: address.label,
          brokerLabel: brokers.label,
          http: flags.http,
          alerts,
          confirm: { token, source, types: confirmedTypes(flags.consumers) },
        });
      } finally {
        await broker.close();
      }
    },
  };
}

/**
 * What is published to memory: or stdout: reaches nobody else, and is `sent`. Beside a relay that
 * works for others that would lose its messages.
 */
async function refuseToSwallow(broker: Broker, { database, layout }: OpenedDatabase): Promise<void> {
  const name = [broker.name, ...(broker.routes?.brokers ?? [])].find((each) => /^(memory|stdout)\b/.test(each));
  if (name === undefined) return;
  const admin = database.messageAdmin({ layout });
  try {
    const other = (await admin.status()).instances.find(({ alive }) => alive);
    if (other === undefined) return;
    throw new InputError(
      `--broker ${name}: would take messages from the relay ${other.label}, which works on this table, and mark them sent although nobody else gets them; stop that one first, or give --force`,
    );
  } finally {
    await admin.close();
  }
}

/** The format that the options mean: pretty for people, on a terminal. */
export function logFormatOf(
  { stderr }: CommandContext,
  { json, logFormat }: Pick<RelayFlags, "json" | "logFormat">,
): "json" | "pretty" {
  return logFormat ?? (stderr.isTTY === true && json !== true ? "pretty" : "json");
}

/**
 * Options of the library from those of the command line; what was not given keeps the library's
 * default.
 */
function settingsOf(flags: RelayFlags): Omit<RelayOptions, "database" | "broker"> {
  if ((flags.keep !== undefined || flags.archiveFor !== undefined) && (flags.onSent ?? "keep") === "keep") {
    throw new InputError("--keep and --archive-for do nothing without --on-sent archive or --on-sent delete");
  }
  const retry: Partial<RetryPolicy> = given({
    maxAttempts: flags.maxAttempts,
    baseMs: flags.backoffBase,
    factor: flags.backoffFactor,
    maxMs: flags.backoffMax,
    slowRetryEveryMs: flags.slowRetryEvery,
    slowRetryForMs: flags.slowRetryFor,
  });
  const retention: Partial<RetentionOptions> = given({
    onSent: flags.onSent,
    keepMs: flags.keep,
    archiveForMs: flags.archiveFor,
  });
  return {
    retry,
    retention,
    ...(flags.confirm === undefined ? {} : { types: flags.confirm }),
    poll: given({ minMs: flags.pollMin, maxMs: flags.pollMax }),
    batchSize: flags.batchSize,
    windowSize: flags.window,
    publishTimeoutMs: flags.publishTimeout,
    leaseMs: flags.lease,
    heartbeatMs: flags.heartbeat,
    sendingMark: flags.sendingMark,
    onFailed: flags.onFailed,
    drainTimeoutMs: flags.drainTimeout,
    label: flags.label,
  };
}

/**
 * The object without the members that are undefined: a spread over defaults must not erase them.
 */
function given<Options extends object>(
  options: Options,
): { [Name in keyof Options]?: Exclude<Options[Name], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Name in keyof Options]?: Exclude<Options[Name], undefined> };
}
