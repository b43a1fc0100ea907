import type { Database, TableLayout } from "rowpost";
import type { UnknownConfirmation } from "rowpost/admin";
import type { CommandContext } from "./context.ts";
import { printJson, printLine, shortened, tableText } from "./output.ts";

/** As many as are stored. */
const MOST = 10_000;
/** Readable in a terminal; `--json` has all. */
const SHOWN = 100;

export async function readUnknown(
  database: Database,
  layout: TableLayout,
  wanted: { readonly type?: string; readonly key?: string; readonly consumer?: string },
): Promise<readonly UnknownConfirmation[]> {
  const store = database.reconcileStore({ layout });
  try {
    const all = await store.view((view) => view.unknownConfirmations(MOST));
    return all.filter(
      (one) =>
        (wanted.type ?? one.type) === one.type &&
        (wanted.key ?? one.key) === one.key &&
        (wanted.consumer ?? one.consumer) === one.consumer,
    );
  } finally {
    await store.close();
  }
}

export function printUnknown(context: CommandContext, unknown: readonly UnknownConfirmation[], isJson: boolean): void {
  if (isJson) printJson(context, unknown);
  else printLine(context, unknown.length === 0 ? "no confirmations of unknown messages" : textOf(context, unknown));
}

function textOf(context: CommandContext, unknown: readonly UnknownConfirmation[]): string {
  const columns = ["LAST", "TIMES", "TYPE", "KEY", "CONSUMER", "SAID", "MESSAGE"].map((title) => ({
    title,
    ...(title === "TIMES" ? { align: "right" as const } : {}),
  }));
  const rows = unknown
    .slice(0, SHOWN)
    .map(({ consumer, error, isThere, key, lastAt, times, type }) => [
      ...[lastAt, String(times), type, key, consumer ?? ""],
      ...[error === undefined ? "consumed" : shortened(error, 60), isThere ? "there now" : "not there"],
    ]);
  const more = unknown.length > SHOWN ? `\nthe last ${SHOWN} of ${unknown.length}; --json has all` : "";
  return `${tableText(context, columns, rows)}${more}`;
}
