/** What a message table lacks and works without, until something goes wrong. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import type { Executor } from "../../transactions/executor.ts";
import type { CheckedSchema } from "./check-schema.ts";
import type { TableLayout } from "./layout.ts";
import { integer, text, textOrNull } from "./rows.ts";
import type { SchemaStatements } from "./statements.ts";

/** An index of the message table. */
export interface TableIndex {
  /** In lower case; empty: an expression, or a part of a column. */
  readonly columns: readonly string[];
  /** Of a partial one. */
  readonly predicate: string | undefined;
  readonly isUnique: boolean;
}

export async function readIndexes(
  session: Pick<Executor, "run">,
  { indexes }: Pick<SchemaStatements, "indexes">,
): Promise<readonly TableIndex[]> {
  const found = new Map<string, TableIndex & { readonly columns: string[] }>();
  for (const row of (await session.run(indexes())).rows) {
    const name = text(row, "index_name");
    let index = found.get(name);
    if (index === undefined) {
      index = {
        columns: [],
        predicate: textOrNull(row, "predicate") ?? undefined,
        isUnique: integer(row, "is_unique") === 1,
      };
      found.set(name, index);
    }
    index.columns[integer(row, "place")] = (textOrNull(row, "column_name") ?? "").toLowerCase();
  }
  return [...found.values()];
}

/** What an enqueue says. */
export const WITHOUT_KEY =
  "the message table has no unique key over its type and key, and nothing else, so that a message could be written twice: rowpost doctor names the statement that makes it. Nothing was written.";

type Schema = Pick<SchemaStatements, "identityIndex" | "needsExactKey" | "versionStart">;

/** The gravest first. */
export function tableFindings(
  { layout, schema }: { readonly layout: TableLayout; readonly schema: Schema },
  indexes: readonly TableIndex[],
  { versionDefault }: CheckedSchema,
): readonly Diagnosis[] {
  const found: Diagnosis[] = [];
  const { messageKey, messageType } = layout.columns;
  if (!indexes.some((index) => tellsDuplicates(index, layout, schema))) {
    found.push({
      id: "D109",
      severity: "warning",
      what: `${layout.table} has no unique key over (${messageType}, ${messageKey})`,
      why: "a message may stand in it twice, and is sent twice; enqueue refuses to work without it",
      mend: `${schema.identityIndex}; a partitioned table takes none that lacks the column of its partitions: move old messages with archiveAfterDays instead of dropping partitions`,
    });
  }
  if (schema.versionStart !== undefined && isConstant(versionDefault)) {
    const isOurs = layout.name === "default";
    found.push({
      id: "D110",
      severity: isOurs ? "warning" : "note",
      what: `${layout.columns.lockVersion} of ${layout.table} begins at the same number in every row`,
      why: "after a fail-over that lost commits, the receipt of a lost message may fit the new one that got its id, which is then never sent",
      mend: `${schema.versionStart}; until then, after such a fail-over, what docs/operations.md says of ids`,
    });
  }
  return found;
}

function tellsDuplicates({ columns, isUnique, predicate }: TableIndex, { columns: of }: TableLayout, schema: Schema) {
  const identity = [of.messageType, of.messageKey].map((column) => column.toLowerCase());
  if (!isUnique || predicate !== undefined || !columns.every((column) => identity.includes(column))) return false;
  return !schema.needsExactKey || columns.length === identity.length;
}

/** `0`, `'0'`, `(0)`, `0::bigint`, or no default at all. */
function isConstant(preset: string | null): boolean {
  return preset === null || /^\(*['"]?(?:-?\d+|null)['"]?\)*(?:::\w+)?$/i.test(preset.trim());
}
