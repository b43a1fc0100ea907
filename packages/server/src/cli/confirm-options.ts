import { type Command, Option } from "commander";
import type { ConfirmedType, RelayMessageType } from "rowpost";
import { understand } from "../broker-routes.ts";
import { brokerLabel, brokerSecret } from "../broker-url.ts";
import { CONFIRM_TOKEN_VARIABLE, LEAST_TOKEN_LENGTH } from "../confirm-endpoint.ts";
import type { ConfirmSource } from "../confirm-topic/index.ts";
import { checkSource } from "../confirm-topic/sources.ts";
import { duration, InputError } from "./arguments.ts";
import { type CommandContext, keepSecret } from "./context.ts";

export type ConsumersByType = Readonly<Record<string, readonly string[]>>;

export function addConsumersOption(command: Command): Command {
  return command.addOption(
    new Option(
      "--consumers <type=names>",
      "messages of this type are consumed when all of these consumers have confirmed, such as order.paid=billing,stock; may be given several times",
    ).argParser(collectConsumers),
  );
}

export interface TopicFlags {
  readonly confirmations?: string;
  readonly confirmationsBroker?: string;
  readonly confirmationsGroup: string;
  readonly broker?: string;
  readonly once?: true;
}

export function addTopicOptions(command: Command): Command {
  return command
    .option(
      "--confirmations <topic>",
      "read what consumers confirm from this topic (RabbitMQ: this queue; NATS: this stream)",
    )
    .option("--confirmations-broker <url>", "where that topic is (default: the broker of --broker)")
    .option(
      "--confirmations-group <name>",
      "consumer group that reads it, the same for all relays of the table",
      "rowpost-confirmations",
    );
}

/** Undefined: none is asked for. Throws {@link InputError}. */
export function topicSource(context: CommandContext, flags: TopicFlags): ConfirmSource | undefined {
  const { broker, confirmations: topic, confirmationsBroker, confirmationsGroup: group, once } = flags;
  if (topic === undefined) {
    if (confirmationsBroker === undefined) return undefined;
    throw new InputError("--confirmations-broker does nothing without --confirmations TOPIC");
  }
  if (once === true) throw new InputError("--confirmations is for a relay that goes on running: leave --once out");
  const text = confirmationsBroker ?? broker;
  if (text === undefined) throw new InputError("--confirmations needs --confirmations-broker URL, or --broker");
  keepSecret(context, brokerSecret(text));
  const option = confirmationsBroker === undefined ? "--broker" : "--confirmations-broker";
  const { environment, url } = understand(option, text, context.environment);
  checkSource(url);
  return { url, environment, label: brokerLabel(url), topic, group };
}

export function confirmedTypes(consumers: ConsumersByType = {}): readonly ConfirmedType[] {
  return Object.entries(consumers).map(([name, names]) => ({ name, confirm: { consumers: names } }));
}

export function confirmToken(context: CommandContext): string | undefined {
  const token = context.environment[CONFIRM_TOKEN_VARIABLE];
  if (token === undefined || token === "") return undefined;
  keepSecret(context, token);
  if (token.length < LEAST_TOKEN_LENGTH || /\s/.test(token)) {
    throw new InputError(
      `${CONFIRM_TOKEN_VARIABLE} must have at least ${LEAST_TOKEN_LENGTH} characters and no blanks: openssl rand -hex 32`,
    );
  }
  return token;
}

const CONFIRMED = /^(.+)=([^=:]+)(?::(resend|fail|alert))?$/;

export function collectConfirmed(value: string, before: readonly RelayMessageType[] = []): readonly RelayMessageType[] {
  const [, name, within = "", action = "resend"] = CONFIRMED.exec(value) ?? [];
  if (name === undefined) {
    throw new InputError(
      `--confirm ${value}: write TYPE=DURATION, such as order.created=10m, and behind it :resend, :fail or :alert`,
    );
  }
  const confirm = {
    withinMs: Math.max(1, duration(within)),
    onTimeout: action as "resend" | "fail" | "alert",
  };
  return [...before.filter((type) => type.name !== name), { name, confirm }];
}

function collectConsumers(value: string, before: ConsumersByType = {}): ConsumersByType {
  const at = value.lastIndexOf("=");
  const names = value
    .slice(at + 1)
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (at < 1 || names.length === 0) {
    throw new InputError(`--consumers ${value}: write TYPE=NAME,NAME, such as order.paid=billing,stock`);
  }
  return { ...before, [value.slice(0, at)]: names };
}
