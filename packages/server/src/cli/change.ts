import type { Command } from "commander";
import type { ManyMessages, ManyPreview, ManyProgress, ManyReport, ManyRequest, OperatorAction } from "rowpost/admin";
import { watchSignals } from "../signals.ts";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { type ActionFlags, addActionOptions, addFilterOptions, type FilterFlags } from "./filter.ts";
import { atLeastText, countText, createProgress, printJson, printLine, stateText, tableText } from "./output.ts";

/** Options of {@link addChangeOptions}. */
export interface ChangeFlags extends ConnectionFlags, FilterFlags, ActionFlags {
  readonly dryRun?: true;
}

export function addChangeOptions(command: Command): Command {
  return addActionOptions(addFilterOptions(addConnectionOptions(command))).option(
    "--dry-run",
    "change nothing, and count the messages that it means",
  );
}

export interface Change extends ManyMessages, Pick<ManyRequest, "untilMs"> {
  /** Throws if the reason is missing; not called with `--dry-run`. */
  readonly action: () => OperatorAction;
  readonly verb: string;
  readonly allowed: string;
}

/**
 * Changes all matching messages, or stops at SIGINT or SIGTERM. Exit code 1 if it was cancelled or
 * a selected message stayed as it is; no match is no failure.
 */
export async function changeMessages(
  context: CommandContext,
  flags: ChangeFlags,
  { action: actionOf, allowed, verb, ...meant }: Change,
): Promise<ExitCode> {
  if (flags.dryRun === true) {
    const preview = await withAdmin(context, flags, (admin) => admin.preview(meant));
    if (flags.json === true) printJson(context, preview);
    else printPreview(context, preview, verb);
    return 0;
  }
  const action = actionOf();
  const progress = createProgress(context);
  const signals = watchSignals(() => undefined);
  const { signal } = signals;
  signal.addEventListener("abort", () => {
    context.stderr.write("cancelled behind the batch that runs; a second signal ends at once\n");
  });
  let changed = 0;
  const onProgress = (told: ManyProgress): void => {
    ({ changed } = told);
    progress.show(`${verb} ${countText(changed, "message")} …`);
  };
  const request = { ...meant, action, limit: flags.limit, signal, onProgress };
  try {
    const report = await withAdmin(context, flags, (admin) => admin.changeMany(request));
    progress.end();
    if (flags.json === true) printJson(context, { kind: meant.kind, ...report });
    else printReport(context, report, { allowed, verb });
    return report.left > 0 || report.state === "cancelled" ? 1 : 0;
  } catch (error) {
    progress.end();
    if (changed > 0)
      context.stderr.write(
        `${verb} ${countText(changed, "message")} before it failed; start it again for the others\n`,
      );
    throw error;
  } finally {
    signals.end();
  }
}

function printPreview(context: CommandContext, { complete, found, samples }: ManyPreview, verb: string): void {
  printLine(context, `${atLeastText({ atLeast: !complete, count: found })} messages would be ${verb}`);
  if (samples.length === 0) return;
  const columns = ["ID", "TYPE", "KEY", "TOPIC", "STATE"].map((title) => ({ title }));
  const rows = samples.map(({ id, key, state, topic, type }) => [id, type, key, topic, stateText(context, state)]);
  printLine(context, tableText(context, columns, rows));
}

function printReport(
  context: CommandContext,
  { changed, conflicts, left, state, vanished }: ManyReport,
  { allowed, verb }: Pick<Change, "allowed" | "verb">,
): void {
  printLine(context, `${verb} ${countText(changed, "message")}`);
  for (const conflict of conflicts) {
    printLine(context, `not changed: ${conflict.id} is ${conflict.state}, and only ${allowed} can be ${verb}`);
  }
  if (left > conflicts.length) printLine(context, `not changed: ${left - conflicts.length} others`);
  if (vanished > 0) printLine(context, `gone meanwhile: ${countText(vanished, "message")}`);
  if (state === "cancelled") printLine(context, "cancelled: the others are as they were");
  else if (changed + left + vanished === 0) printLine(context, "no message matches the filter");
}
