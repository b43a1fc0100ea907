import { userInfo } from "node:os";
import type { Command } from "commander";
import type { MessageFilter, MessageState, OperatorAction } from "rowpost/admin";
import { InputError, instant, listOf, messageId, messageState, wholeNumber } from "./arguments.ts";
import type { CommandContext } from "./context.ts";

/** Options of {@link addFilterOptions}. */
export interface FilterFlags {
  readonly id?: readonly string[];
  readonly type?: string;
  readonly key?: string;
  readonly topic?: string;
  readonly orderingKey?: string;
  readonly state?: readonly MessageState[];
  readonly reasonContains?: string;
  readonly after?: string;
  readonly before?: string;
  readonly limit?: number;
}

/** Options of {@link addActionOptions}. */
export interface ActionFlags {
  readonly reason?: string;
  readonly author?: string;
}

/** Adds the filter options; all given ones must match. */
export function addFilterOptions(command: Command): Command {
  return command
    .option("--id <ids>", "ids, several with commas", listOf(messageId))
    .option("--type <type>", "message type")
    .option("--key <key>", "message key")
    .option("--topic <topic>", "topic")
    .option("--ordering-key <key>", "ordering key")
    .option(
      "--state <states>",
      "states, several with commas: pending, sending, sent, failed, consumed, suspended",
      listOf(messageState),
    )
    .option("--reason-contains <text>", "part of the reason of the last failure")
    .option("--after <instant>", "created after: 2026-11-21T08:00:00Z, a day, or how long ago (2h)", (text) =>
      instant(text),
    )
    .option("--before <instant>", "created before", (text) => instant(text))
    .option("--limit <n>", "at most this many", wholeNumber(1, 1_000_000_000));
}

export function addActionOptions(command: Command): Command {
  return command
    .option("--reason <text>", "why; kept in the audit table")
    .option("--author <name>", "who; kept in the audit table (default: the user of the operating system)");
}

export function filterOf(flags: FilterFlags): MessageFilter {
  return {
    ...(flags.id === undefined ? {} : { ids: flags.id }),
    ...(flags.type === undefined ? {} : { type: flags.type }),
    ...(flags.key === undefined ? {} : { key: flags.key }),
    ...(flags.topic === undefined ? {} : { topic: flags.topic }),
    ...(flags.orderingKey === undefined ? {} : { orderingKey: flags.orderingKey }),
    ...(flags.state === undefined ? {} : { states: flags.state }),
    ...(flags.reasonContains === undefined ? {} : { failReasonContains: flags.reasonContains }),
    ...(flags.after === undefined ? {} : { createdAfter: flags.after }),
    ...(flags.before === undefined ? {} : { createdBefore: flags.before }),
  };
}

/**
 * The filter of a command that changes messages in the `allowed` states. An empty filter would
 * select all of them and is refused.
 */
export function changingFilter(flags: FilterFlags, allowed: readonly MessageState[]): MessageFilter {
  const filter = filterOf(flags);
  if (Object.keys(filter).length === 0) {
    throw new InputError(
      "which messages? Without a filter nothing is changed: give --id, --type, --key, --topic, --state, …",
    );
  }
  const impossible = filter.states?.find((state) => !allowed.includes(state));
  if (impossible !== undefined) {
    throw new InputError(`--state ${impossible}: this is possible for ${allowed.join(" and ")} messages only`);
  }
  return filter;
}

/** Author and reason. Without `defaultReason` a reason is required. */
export function actionOf(context: CommandContext, flags: ActionFlags, defaultReason?: string): OperatorAction {
  const reason = flags.reason?.trim() ?? "";
  if (reason === "" && defaultReason === undefined) {
    throw new InputError("--reason is missing: it is kept with the change, for whoever asks later");
  }
  const author = flags.author?.trim() ?? "";
  return {
    reason: reason === "" ? (defaultReason ?? "") : reason,
    author: author === "" ? currentUser(context) : author,
    via: "cli",
  };
}

/** Name of the OS user; a container with an unknown user id has none. */
function currentUser(context: CommandContext): string {
  try {
    return userInfo().username;
  } catch {
    return context.environment["USER"] ?? "unknown";
  }
}
