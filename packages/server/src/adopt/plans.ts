/** How the database would look for messages on this very table, as the relay asks. */
import { ConfigurationError, createLayout, type Database, type TableLayout } from "rowpost";
import type { StatementPlan } from "rowpost/admin";
import type { LayoutFile } from "./proposal.ts";

/** On fewer rows a server reads the whole table whatever indexes there are. */
const FEW = 1_000;

/** A line for each statement; nothing before the layout is known. */
export async function explained(
  database: Database,
  { advice, rows }: { readonly advice: readonly string[]; readonly rows: number },
  layout: TableLayout | undefined,
): Promise<string[]> {
  if (layout === undefined) return [];
  const found = await database.doctor({ layout }).plans();
  const index = advice.find((each) => each.startsWith("CREATE INDEX"));
  const isShort = found.some(({ steps }) => steps.some(({ readsAll }) => readsAll));
  const isEarly = found.some(({ problem }) => problem !== undefined);
  return [
    ...found.map(lineOf),
    ...(isShort && rows < FEW ? [`the table has ${rows} rows: with so few a server may take no index`] : []),
    ...(isShort && index !== undefined ? [`mended by: ${index} (its plans can be seen once it is there)`] : []),
    ...(isEarly
      ? ["what could not be explained needs the tables that rowpost migrate makes: run adopt again then"]
      : []),
  ];
}

/** Undefined: it cannot be one before something is mended. */
export function tableLayout({ columns, ...rest }: LayoutFile): TableLayout | undefined {
  const there = Object.entries(columns).map(([name, column]) => [name, column ?? undefined]);
  try {
    return createLayout({ ...rest, columns: Object.fromEntries(there) });
  } catch (error) {
    if (error instanceof ConfigurationError) return undefined;
    throw error;
  }
}

function lineOf({ problem, statement, steps }: StatementPlan): string {
  if (problem !== undefined) return `${statement}: could not be explained: ${problem}`;
  if (steps.length === 0) return `${statement}: nothing can match now, so that no way is chosen`;
  return `${statement}: ${[...new Set(steps.map(wayOf))].join("; ")}`;
}

function wayOf({ index, readsAll, rows }: StatementPlan["steps"][number]): string {
  const about = rows === undefined ? "" : `, about ${rows} rows`;
  if (!readsAll) return `by ${index ?? "its place"}${about}`;
  return `reads the whole ${index === undefined ? "table" : `index ${index}`}${about}`;
}
