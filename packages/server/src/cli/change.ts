/**
 * Changing many messages: in batches, with progress, until none is left or the limit is reached;
 * and how the outcome is told.
 */
import type { ChangeConflict, ChangeReport } from "rowpost";
import type { CommandContext, ExitCode } from "./context.ts";
import { countText, createProgress, printJson, printLine } from "./output.ts";

/**
 * Messages of one transaction: small enough that a relay waits no longer than for one of its own
 * batches.
 */
const BATCH_SIZE = 1_000;

/** What became of a change in all its batches. */
export interface ChangeResult extends Omit<ChangeReport, "nextAfterId"> {
  /** What a removal did. */
  readonly mode?: "archive" | "delete";
}

/**
 * Runs `change` in the order of ids until no other message matches, each time with at most the
 * number of messages that are still allowed.
 */
export async function changeInBatches(
  context: CommandContext,
  options: { readonly limit: number | undefined; readonly verb: string },
  change: (part: { readonly limit: number; readonly afterId: string | undefined }) => Promise<ChangeReport>,
): Promise<ChangeResult> {
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const progress = createProgress(context);
  const conflicts: ChangeConflict[] = [];
  let changed = 0;
  let afterId: string | undefined;
  try {
    do {
      const report = await change({ limit: Math.min(BATCH_SIZE, limit - changed), afterId });
      changed += report.changed;
      conflicts.push(...report.conflicts);
      progress.show(`${options.verb} ${countText(changed, "message")} …`);
      afterId = report.nextAfterId;
    } while (afterId !== undefined && changed < limit);
  } finally {
    progress.end();
  }
  return { changed, conflicts };
}

/**
 * Prints what became of a change. Exit code 1 when a message that was meant is in a state that
 * forbids it; none that matches is no failure.
 */
export function printChange(
  context: CommandContext,
  report: ChangeResult,
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
