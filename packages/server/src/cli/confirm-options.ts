/** Options about message types that consumers confirm: `--confirm` and `--consumers`. */
import { type Command, Option } from "commander";
import type { ConfirmedType, RelayMessageType } from "rowpost";
import { CONFIRM_TOKEN_VARIABLE, LEAST_TOKEN_LENGTH } from "../confirm-endpoint.ts";
import { duration, InputError } from "./arguments.ts";
import { type CommandContext, keepSecret } from "./context.ts";

/** Names of consumers by message type. */
export type ConsumersByType = Readonly<Record<string, readonly string[]>>;

/** Adds `--consumers`. */
export function addConsumersOption(command: Command): Command {
  return command.addOption(
    new Option(
      "--consumers <type=names>",
      "messages of this type are consumed when all of these consumers have confirmed, such as order.paid=billing,stock; may be given several times",
    ).argParser(collectConsumers),
  );
}

/** What `createOutbox` takes as its types. */
export function confirmedTypes(consumers: ConsumersByType = {}): readonly ConfirmedType[] {
  return Object.entries(consumers).map(([name, names]) => ({ name, confirm: { consumers: names } }));
}

/** The token that consumers send, out of the environment; undefined: there is none. */
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

/** One more `TYPE=DURATION[:ACTION]` of `--confirm`. */
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

/** One more `TYPE=A,B` of `--consumers`. */
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
