import { Command } from "commander";
import { addChangeOptions, changeMessages } from "./change.ts";
import { withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { actionOf, changingFilter } from "./filter.ts";
import { countText, printJson, printLine } from "./output.ts";
import { addScopeOptions, type RuleScope, ruleScopeOf, type ScopeFlags, scopeText } from "./scope.ts";

const DEFAULT_REASON = "resumed by hand";

export function resumeCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addScopeOptions(addChangeOptions(new Command("resume")))
    .description(
      "let suspended messages go: those of a filter, or by lifting the rule for a --topic, --type, --ordering-key or --all-relay",
    )
    .addHelpText(
      "after",
      `
Examples:
  rowpost resume --database sqlite:./app.db --topic orders
  rowpost resume --database mysql://app@127.0.0.1/shop --id 4711 --reason "amount corrected"
  rowpost resume --database mysql://app@127.0.0.1/shop --all-relay`,
    )
    .action(async (flags: ScopeFlags) => {
      const rule = ruleScopeOf(flags);
      finish(rule === undefined ? await resumeRows(context, flags) : await resumeScope(context, flags, rule));
    });
}

async function resumeRows(context: CommandContext, flags: ScopeFlags): Promise<ExitCode> {
  return await changeMessages(context, flags, {
    kind: "resume",
    filter: changingFilter(flags, ["suspended"]),
    action: () => actionOf(context, flags, DEFAULT_REASON),
    verb: "resumed",
    allowed: "suspended messages",
  });
}

async function resumeScope(context: CommandContext, flags: ScopeFlags, rule: RuleScope): Promise<ExitCode> {
  const action = actionOf(context, flags, DEFAULT_REASON);
  const outcome = await withAdmin(context, flags, async (admin) => {
    const { suspensions } = await admin.status();
    const existed = suspensions.some(({ scope, value }) => scope === rule.scope && value === rule.value);
    return { existed, resumed: await admin.resumeScope({ ...rule, action }) };
  });
  if (flags.json === true) printJson(context, { ...rule, ...outcome });
  else {
    const lifted = outcome.existed ? `resumed ${scopeText(rule)}` : `there was no rule for ${scopeText(rule)}`;
    printLine(context, `${lifted}; ${countText(outcome.resumed, "message")} that it had suspended may go`);
  }
  return 0;
}
