/**
 * Changing many messages: in batches, with progress, until none is left or the limit is reached;
 * and how the outcome is told.
 */
import type { ChangeReport } from "rowpost";
import type { CommandContext, ExitCode } from "./context.ts";
import { countText, createProgress, printJson, printLine } from "./output.ts";

/**
 * Messages of one transaction: small enough that a relay waits no longer than for one of its own
 * batches.
 */
const BATCH_SIZE = 1_000;

/**
 * Runs `change` again and again, each time with at most the number of messages that are still
 * allowed.
 */
export async function changeInBatches(
  context: CommandContext,
  options: { readonly limit: number | undefined; readonly verb: string },
  change: (limit: number) => Promise<ChangeReport>,
): Promise<ChangeReport> {
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const progress = createProgress(context);
  const conflicts = new Map<string, ChangeReport["conflicts"][number]>();
  let changed = 0;
  try {
    while (changed < limit) {
      const batch = Math.min(BATCH_SIZE, limit - changed);
      const report = await change(batch);
      changed += report.changed;
      for (const conflict of report.conflicts) conflicts.set(conflict.id, conflict);
      progress.show(`${options.verb} ${countText(changed, "message")} …`);
      // Fewer than asked for: nothing else matches. Conflicts would match again and again.
      if (report.changed + report.conflicts.length < batch || report.changed === 0) break;
    }
  } finally {
    progress.end();
  }
  return { changed, conflicts: [...conflicts.values()] };
}

/**
 * Prints what became of a change. Exit code 1 when a message that was meant is in a state that
 * forbids it; none that matches is no failure.
 */
export function printChange(
  context: CommandContext,
  report: ChangeReport,
  options: { readonly verb: string; readonly json: boolean; readonly allowed: string },
): ExitCode {
  const { changed, conflicts } = report;
  if (options.json) printJson(context, report);
  else {
    printLine(context, `${options.verb} ${countText(changed, "message")}`);
    for (const { id, state } of conflicts) {
      printLine(context, `not changed: ${id} is ${state}, and only ${options.allowed} can be ${options.verb}`);
    }
    if (changed === 0 && conflicts.length === 0) printLine(context, "no message matches the filter");
  }
  return conflicts.length > 0 ? 1 : 0;
}
