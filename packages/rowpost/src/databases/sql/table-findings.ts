/** Gaps of a message table that do not matter until something goes wrong. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import { diagnose } from "../../message/diagnoses/diagnosis.ts";
import type { Executor } from "../../transactions/executor.ts";
import type { CheckedSchema } from "./check-schema.ts";
import type { TableLayout } from "./layout.ts";
import { integer, text, textOrNull } from "./rows.ts";
import type { SchemaStatements } from "./statements.ts";

export interface TableIndex {
  /** In lower case; empty for an expression or a column prefix. */
  readonly columns: readonly string[];
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

export const WITHOUT_KEY =
  "the message table has no unique key over its type and key, and nothing else, so that a message could be written twice: rowpost doctor names the statement that makes it. Nothing was written.";

type Schema = Pick<SchemaStatements, "identityIndex" | "needsExactKey" | "versionStart">;

/** Most severe first. */
export function tableFindings(
  { layout, schema }: { readonly layout: TableLayout; readonly schema: Schema },
  indexes: readonly TableIndex[],
  { versionDefault }: CheckedSchema,
): readonly Diagnosis[] {
  const found: Diagnosis[] = [];
  const { lockVersion, messageKey, messageType } = layout.columns;
  if (!indexes.some((index) => tellsDuplicates(index, layout, schema))) {
    const facts = { table: layout.table, columns: `${messageType}, ${messageKey}`, statement: schema.identityIndex };
    found.push(diagnose("no-unique-key", facts));
  }
  if (schema.versionStart !== undefined && isConstant(versionDefault)) {
    const facts = { table: layout.table, column: String(lockVersion), statement: schema.versionStart };
    found.push(diagnose("constant-version", facts, layout.name === "default" ? "warning" : "note"));
  }
  return found;
}

function tellsDuplicates({ columns, isUnique, predicate }: TableIndex, { columns: of }: TableLayout, schema: Schema) {
  const identity = [of.messageType, of.messageKey].map((column) => column.toLowerCase());
  if (!isUnique || predicate !== undefined || !columns.every((column) => identity.includes(column))) return false;
  return !schema.needsExactKey || columns.length === identity.length;
}

/** `0`, `'0'`, `(0)`, `0::bigint`, or no default. */
function isConstant(preset: string | null): boolean {
  return preset === null || /^\(*['"]?(?:-?\d+|null)['"]?\)*(?:::\w+)?$/i.test(preset.trim());
}
