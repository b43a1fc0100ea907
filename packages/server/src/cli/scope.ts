/**
 * Scope of `suspend` and `resume`: a rule for a topic, type, ordering key or the whole relay, or
 * the messages of a filter.
 */
import type { Command } from "commander";
import type { SuspensionRule } from "rowpost/admin";
import { InputError } from "./arguments.ts";
import type { ChangeFlags } from "./change.ts";

/** Options of {@link addScopeOptions}, beside those of the change. */
export interface ScopeFlags extends ChangeFlags {
  readonly allRelay?: true;
  readonly rows?: true;
}

export type RuleScope = Pick<SuspensionRule, "scope" | "value">;

export function addScopeOptions(command: Command): Command {
  return command
    .option("--all-relay", "everything that the relays of this table would send")
    .option("--rows", "only messages that are there now, also with nothing but --topic, --type or --ordering-key");
}

/**
 * The rule of the options; undefined: the messages of the filter. One of --topic, --type,
 * --ordering-key alone is a rule, which includes future messages; together with other filters, or
 * with --rows, it is part of the filter.
 */
export function ruleScopeOf(flags: ScopeFlags): RuleScope | undefined {
  const scopes: RuleScope[] = [];
  if (flags.topic !== undefined) scopes.push({ scope: "topic", value: flags.topic });
  if (flags.type !== undefined) scopes.push({ scope: "type", value: flags.type });
  if (flags.orderingKey !== undefined) scopes.push({ scope: "ordering_key", value: flags.orderingKey });
  const picksMessages = [
    flags.id,
    flags.key,
    flags.state,
    flags.reasonContains,
    flags.after,
    flags.before,
    flags.limit,
  ].some((flag) => flag !== undefined);
  if (flags.dryRun === true && !picksMessages && flags.rows !== true)
    throw new InputError("--dry-run counts messages, and a rule is for those to come too: add --rows, or a filter");
  if (flags.allRelay === true) {
    if (scopes.length === 0 && !picksMessages && flags.rows !== true) return { scope: "relay", value: "*" };
    throw new InputError("--all-relay means everything and takes no filter");
  }
  if (picksMessages || flags.rows === true || scopes.length === 0) return undefined;
  if (scopes.length === 1) return scopes[0];
  throw new InputError(
    "a rule is for one of --topic, --type, --ordering-key; with --rows they pick out the messages that are there now",
  );
}

export function scopeText({ scope, value }: RuleScope): string {
  return scope === "relay" ? "the whole relay" : `${scope.replace("_", " ")} ${value}`;
}
