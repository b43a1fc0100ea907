/**
 * `rowpost suspend`: holds back the messages of a filter, or of a topic, type, ordering key or the
 * whole relay.
 */
import { Command } from "commander";
import type { OperatorAction } from "rowpost/admin";
import { duration, InputError, instant } from "./arguments.ts";
import { addChangeOptions, changeMessages } from "./change.ts";
import { withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { actionOf, changingFilter } from "./filter.ts";
import { durationText, printJson, printLine } from "./output.ts";
import { addScopeOptions, type RuleScope, ruleScopeOf, type ScopeFlags, scopeText } from "./scope.ts";

interface SuspendFlags extends ScopeFlags {
  readonly until?: string;
  readonly for?: number;
}

/** As for a message's delay. SQLite silently loses far longer ends, and MariaDB refuses them. */
const LONGEST_MS = 10 * 365 * 86_400_000;

export function suspendCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addScopeOptions(addChangeOptions(new Command("suspend")))
    .description(
      "hold messages back until they are resumed: those of a filter, or by a rule for one --topic, --type, --ordering-key or --all-relay",
    )
    .option("--until <instant>", "resume by itself at this time (2026-11-21T18:00:00+08:00)", (text) => instant(text))
    .option("--for <duration>", "resume by itself after this time (30m, 6h)", duration)
    .addHelpText(
      "after",
      `
Examples:
  rowpost suspend --database sqlite:./app.db --topic orders --reason "consumer is broken" --for 30m
  rowpost suspend --database mysql://app@127.0.0.1/shop --id 4711 --reason "wrong amount"
  rowpost suspend --database mysql://app@127.0.0.1/shop --all-relay --reason "moving the broker"
  rowpost suspend --database mysql://app@127.0.0.1/shop --topic orders --before 2026-11-20 --reason "to be looked at"`,
    )
    .action(async (flags: SuspendFlags) => {
      const rule = ruleScopeOf(flags);
      const endsInMs = endsInMsOf(flags);
      finish(
        rule === undefined
          ? await suspendRows(context, flags, endsInMs)
          : await suspendScope(context, flags, { ...rule, endsInMs }),
      );
    });
}

/**
 * Milliseconds until it ends, or null. For --until by this host's clock; from then on the database
 * keeps the time.
 */
function endsInMsOf(flags: SuspendFlags): number | null {
  if (flags.until === undefined) {
    if (flags.for !== undefined) refuseTooLong("--for", flags.for);
    return flags.for ?? null;
  }
  if (flags.for !== undefined) throw new InputError("--until and --for say the same thing; give one of them");
  const leftMs = Date.parse(flags.until) - Date.now();
  if (leftMs <= 0) throw new InputError(`--until ${flags.until} has passed`);
  refuseTooLong("--until", leftMs);
  return leftMs;
}

function refuseTooLong(option: string, ms: number): void {
  if (ms <= LONGEST_MS) return;
  throw new InputError(
    `${option} is more than 10 years (3650d) away; without it, messages are held until they are resumed`,
  );
}

async function suspendRows(context: CommandContext, flags: SuspendFlags, endsInMs: number | null): Promise<ExitCode> {
  return await changeMessages(context, flags, {
    kind: "suspend",
    filter: changingFilter(flags, ["pending", "failed"]),
    untilMs: endsInMs ?? undefined,
    action: () => actionOf(context, flags),
    verb: "suspended",
    allowed: "pending and failed messages",
  });
}

async function suspendScope(
  context: CommandContext,
  flags: SuspendFlags,
  rule: RuleScope & { readonly endsInMs: number | null },
): Promise<ExitCode> {
  const action: OperatorAction = actionOf(context, flags);
  await withAdmin(context, flags, (admin) => admin.suspendScope({ ...rule, ...action }));
  if (flags.json === true) printJson(context, { ...rule, ...action });
  else {
    const end = rule.endsInMs === null ? "until it is resumed" : `for ${durationText(rule.endsInMs)}`;
    printLine(context, `suspended ${scopeText(rule)} ${end}; relays notice within a few seconds`);
  }
  return 0;
}
