/**
 * Abilities that a relay gets from the live table's indexes and columns, never from the layout's
 * name.
 */
import type { TableAbilities } from "../../relay/store.ts";
import type { Session } from "../database.ts";
import type { CheckedSchema } from "./check-schema.ts";
import type { TableLayout } from "./layout.ts";
import { integer, text } from "./rows.ts";
import type { SchemaStatements, TopicIndex } from "./statements.ts";
import { readIndexes, type TableIndex, tableFindings } from "./table-findings.ts";

export async function readAbilities(
  session: Session,
  options: {
    readonly layout: TableLayout;
    readonly schema: SchemaStatements;
    readonly checked: CheckedSchema;
  },
): Promise<TableAbilities> {
  const { layout, schema, checked } = options;
  const { orderingKey } = layout.columns;
  const indexes = await readIndexes(session, schema);
  const scansByTopic = indexes.some((index) => schema.topicIndex.usable.some((wanted) => serves(index, wanted)));
  return {
    scansByTopic,
    setsBehind: orderingKey !== undefined && checked.nextRetryKeepsMs,
    missingIndexes: scansByTopic ? [] : [schema.topicIndex.create],
    shiftingZone: await shiftingZone(session, schema),
    findings: tableFindings({ layout, schema }, indexes, checked),
  };
}

async function shiftingZone(session: Session, { zone }: Pick<SchemaStatements, "zone">): Promise<string | undefined> {
  if (zone === undefined) return undefined;
  const [row] = (await session.run(zone())).rows;
  return row !== undefined && integer(row, "shifts") === 1 ? text(row, "zone") : undefined;
}

function serves(index: TableIndex, wanted: TopicIndex["usable"][number]): boolean {
  return (
    wanted.columns.every((column, place) => index.columns[place] === column.toLowerCase()) &&
    plain(index.predicate) === plain(wanted.predicate)
  );
}

/** Normalizes `(((state)::text || ''::text) = 'pending'::text)` to `state || '' = 'pending'`. */
function plain(predicate: string | undefined): string | undefined {
  return predicate
    ?.replace(/::[a-z ]+/gi, "")
    .replace(/[\s()"'`]/g, "")
    .toLowerCase();
}
