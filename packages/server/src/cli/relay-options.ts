import { type Command, Option } from "commander";
import type { Broker, Logger } from "rowpost";
import { collectRoutes, planBrokers, ROUTES_VARIABLE } from "../broker-routes.ts";
import { BROKER_URL_VARIABLE, brokerForms } from "../broker-url.ts";
import { CONFIRM_TOKEN_VARIABLE } from "../confirm-endpoint.ts";
import type { DaemonOptions } from "../daemon.ts";
import { type HttpAddress, httpAddress } from "../http-address.ts";
import { LOG_LEVELS, type LogLevel } from "../log.ts";
import { alertConfig, alertsOption } from "./alert.ts";
import { InputError } from "./arguments.ts";
import {
  addConsumersOption,
  addTopicOptions,
  type ConsumersByType,
  confirmedTypes,
  confirmToken,
  type TopicFlags,
  topicSource,
} from "./confirm-options.ts";
import type { ConnectionFlags, OpenedDatabase } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { addRelaySettings, relaySettings } from "./relay-settings.ts";

/** Options of {@link addBrokerOptions} and {@link addRelayOptions}, as commander gives them. */
export interface RelayFlags extends ConnectionFlags, TopicFlags {
  readonly broker?: string;
  readonly route?: readonly string[];
  readonly http?: HttpAddress;
  readonly alerts?: string;
  readonly consumers?: ConsumersByType;
  readonly label?: string;
  readonly force?: true;
  readonly logLevel: LogLevel;
  readonly logFormat?: "json" | "pretty";
}

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

export function addRelayOptions(command: Command): Command {
  addRelaySettings(command);
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

export interface RelayPlan {
  run(
    opened: OpenedDatabase,
    how: Pick<DaemonOptions, "once" | "beside"> & { readonly logger: Logger },
  ): Promise<ExitCode>;
  readonly label: string;
}

/** Throws {@link InputError} for options that cannot work, before anything is opened. */
export function planRelay(context: CommandContext, flags: RelayFlags): RelayPlan {
  const missing = `--broker is missing (or set ${BROKER_URL_VARIABLE}): ${brokerForms()}`;
  const brokers = planBrokers(context, flags, missing);
  const settings = relaySettings(flags);
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
          relay: { ...settings, label: flags.label, database, broker, layout, logger },
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
 * Messages published to memory: or stdout: become `sent` and reach nobody else. Beside a relay that
 * works for others they would be lost.
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

export function logFormatOf(
  { stderr }: CommandContext,
  { json, logFormat }: Pick<RelayFlags, "json" | "logFormat">,
): "json" | "pretty" {
  return logFormat ?? (stderr.isTTY === true && json !== true ? "pretty" : "json");
}
