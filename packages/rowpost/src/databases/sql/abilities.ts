/**
 * What the live table lets a relay do: told by its indexes and columns, never by its layout's name.
 */
import type { TableAbilities } from "../../relay/store.ts";
import type { Session } from "../database.ts";
import type { CheckedSchema } from "./check-schema.ts";
import type { TableLayout } from "./layout.ts";
import { integer, text, textOrNull } from "./rows.ts";
import type { SchemaStatements, TopicIndex } from "./statements.ts";

/** Reads the indexes of the message table. */
export async function readAbilities(
  session: Session,
  options: {
    readonly layout: TableLayout;
    readonly schema: Pick<SchemaStatements, "indexes" | "topicIndex" | "zone">;
    readonly checked: CheckedSchema;
  },
): Promise<TableAbilities> {
  const { layout, schema, checked } = options;
  const { orderingKey } = layout.columns;
  const scansByTopic = await hasTopicIndex(session, schema);
  return {
    scansByTopic,
    setsBehind: orderingKey !== undefined && checked.nextRetryKeepsMs,
    missingIndexes: scansByTopic ? [] : [schema.topicIndex.create],
    shiftingZone: await shiftingZone(session, schema),
  };
}

async function shiftingZone(session: Session, { zone }: Pick<SchemaStatements, "zone">): Promise<string | undefined> {
  if (zone === undefined) return undefined;
  const [row] = (await session.run(zone())).rows;
  return row !== undefined && integer(row, "shifts") === 1 ? text(row, "zone") : undefined;
}

/** Columns of one index, and the condition of a partial one. */
interface Index {
  readonly columns: string[];
  readonly predicate: string | undefined;
}

async function hasTopicIndex(
  session: Session,
  { indexes, topicIndex }: Pick<SchemaStatements, "indexes" | "topicIndex">,
): Promise<boolean> {
  const found = new Map<string, Index>();
  for (const row of (await session.run(indexes())).rows) {
    const name = text(row, "index_name");
    let index = found.get(name);
    if (index === undefined) {
      index = { columns: [], predicate: textOrNull(row, "predicate") ?? undefined };
      found.set(name, index);
    }
    index.columns[integer(row, "place")] = (textOrNull(row, "column_name") ?? "").toLowerCase();
  }
  return [...found.values()].some((index) => topicIndex.usable.some((wanted) => serves(index, wanted)));
}

function serves(index: Index, wanted: TopicIndex["usable"][number]): boolean {
  return (
    wanted.columns.every((column, place) => index.columns[place] === column.toLowerCase()) &&
    plain(index.predicate) === plain(wanted.predicate)
  );
}

/** `(((state)::text || ''::text) = 'pending'::text)` and `state || '' = 'pending'` in one form. */
function plain(predicate: string | undefined): string | undefined {
  return predicate
    ?.replace(/::[a-z ]+/gi, "")
    .replace(/[\s()"'`]/g, "")
    .toLowerCase();
}
