/** `rowpost resume`: lets suspended messages go. */
import { Command } from "commander";
import { changeInBatches, printChange } from "./change.ts";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { type ActionFlags, actionOf, addActionOptions, addFilterOptions, changingFilter } from "./filter.ts";
import { countText, printJson, printLine } from "./output.ts";
import { addScopeOptions, type RuleScope, ruleScopeOf, type ScopeFlags, scopeText } from "./scope.ts";

interface ResumeFlags extends ConnectionFlags, ScopeFlags, ActionFlags {}

const DEFAULT_REASON = "resumed by hand";

/** The command; `finish` takes its exit code. */
export function resumeCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addActionOptions(addScopeOptions(addFilterOptions(addConnectionOptions(new Command("resume")))))
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
    .action(async (flags: ResumeFlags) => {
      const rule = ruleScopeOf(flags);
      finish(rule === undefined ? await resumeRows(context, flags) : await resumeScope(context, flags, rule));
    });
}

async function resumeRows(context: CommandContext, flags: ResumeFlags): Promise<ExitCode> {
  const filter = changingFilter(flags, { allowed: ["suspended"] });
  const action = actionOf(context, flags, DEFAULT_REASON);
  const report = await withAdmin(context, flags, (admin) =>
    changeInBatches(context, { limit: flags.limit, verb: "resumed" }, (part) =>
      admin.resume({ filter, action, ...part }),
    ),
  );
  return printChange(context, report, {
    verb: "resumed",
    json: flags.json === true,
    allowed: "suspended messages",
  });
}

async function resumeScope(context: CommandContext, flags: ResumeFlags, rule: RuleScope): Promise<ExitCode> {
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
