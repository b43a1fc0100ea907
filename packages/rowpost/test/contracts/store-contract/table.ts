/**
 * The message table as a person with an SQL client sees it: rows are put, edited and read by hand,
 * past the store under test.
 */
import assert from "node:assert/strict";
import type { TableLayout } from "../../../src/databases/database.ts";
import type { LayoutColumns } from "../../../src/databases/sql/layout.ts";
import { ENGINE_COLUMNS } from "../../../src/databases/sql/layouts.ts";
import { MESSAGE_STATES, type MessageState } from "../../../src/message/states.ts";
import type { RunSql, TestDialect } from "../test-dialect.ts";

/**
 * Values of a row, by what they mean. Instants in milliseconds from now. What a layout has no
 * column for is left out.
 */
export interface RowValues {
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  readonly topic?: string | undefined;
  readonly body?: string | undefined;
  readonly headers?: string | null | undefined;
  readonly contentType?: string | null | undefined;
  readonly orderingKey?: string | null | undefined;
  readonly state?: MessageState | undefined;
  /** Instead of `state`: whatever stands in the column. */
  readonly rawState?: string | number | undefined;
  readonly retryCount?: number | null | undefined;
  readonly deliveryCount?: number | undefined;
  readonly lockVersion?: number | null | undefined;
  readonly deliverInMs?: number | null | undefined;
  readonly nextRetryInMs?: number | null | undefined;
  readonly lastRetryInMs?: number | null | undefined;
  readonly failReason?: string | null | undefined;
  readonly messageId?: string | null | undefined;
  readonly sentInMs?: number | null | undefined;
  readonly consumedInMs?: number | null | undefined;
  readonly createdInMs?: number | undefined;
  readonly modifiedInMs?: number | undefined;
  readonly createdBy?: string | undefined;
  readonly updatedBy?: string | undefined;
}

/**
 * A row as it was read. Fields of columns that the layout lacks, and instants that are NULL, are
 * null; counts that are NULL are 0.
 */
export interface SeenRow {
  readonly id: string;
  readonly type: string;
  readonly key: string;
  readonly topic: string;
  readonly body: string;
  readonly headers: string | null;
  readonly contentType: string | null;
  readonly orderingKey: string | null;
  readonly state: MessageState | "unknown";
  readonly retryCount: number;
  readonly deliveryCount: number;
  readonly lockVersion: number;
  readonly deliverInMs: number | null;
  readonly nextRetryInMs: number | null;
  readonly lastRetryInMs: number | null;
  readonly failReason: string | null;
  readonly messageId: string | null;
  readonly sentInMs: number | null;
  readonly consumedInMs: number | null;
  readonly createdInMs: number | null;
  readonly modifiedInMs: number | null;
  readonly createdBy: string | null;
  readonly updatedBy: string | null;
  readonly identityHash: string;
}

/** A row exactly as it stands, column by column of the layout, as text. For comparing. */
export type ExactRow = Readonly<Partial<Record<keyof LayoutColumns, string | null>>>;

export interface MessageTable {
  /** Inserts rows in their order; returns their ids. */
  put(rows: readonly RowValues[]): Promise<string[]>;
  /** Writes these columns of a row. With `run`, on that connection. */
  edit(id: string, values: RowValues, run?: RunSql): Promise<void>;
  find(id: string): Promise<SeenRow | undefined>;
  /** Fails when the row is gone. */
  row(id: string): Promise<SeenRow>;
  exact(id: string): Promise<ExactRow | undefined>;
  count(): Promise<number>;
}

type Kind = "text" | "count" | "instant";

/** Field, column, and how the value is written. `state` stands apart. */
const FIELDS: readonly (readonly [Exclude<keyof RowValues, "state" | "rawState">, keyof LayoutColumns, Kind])[] = [
  ["type", "messageType", "text"],
  ["key", "messageKey", "text"],
  ["topic", "topic", "text"],
  ["body", "messageBody", "text"],
  ["headers", "headers", "text"],
  ["contentType", "contentType", "text"],
  ["orderingKey", "orderingKey", "text"],
  ["retryCount", "retryCount", "count"],
  ["deliveryCount", "deliveryCount", "count"],
  ["lockVersion", "lockVersion", "count"],
  ["deliverInMs", "deliverAt", "instant"],
  ["nextRetryInMs", "nextRetryAt", "instant"],
  ["lastRetryInMs", "lastRetryAt", "instant"],
  ["failReason", "failReason", "text"],
  ["messageId", "messageId", "text"],
  ["sentInMs", "sentAt", "instant"],
  ["consumedInMs", "consumedAt", "instant"],
  ["createdInMs", "gmtCreate", "instant"],
  ["modifiedInMs", "gmtModified", "instant"],
  ["createdBy", "createdBy", "text"],
  ["updatedBy", "updatedBy", "text"],
];

/** What every row has. A layout's table may have no defaults of its own. */
const DEFAULTS: RowValues = {
  topic: "orders",
  body: "{}",
  state: "pending",
  createdInMs: -60_000,
  modifiedInMs: -60_000,
  createdBy: "contract",
  updatedBy: "contract",
};

/** The table of this layout, on a connection whose clock is the layout's. */
export function createMessageTable(layout: TableLayout, dialect: TestDialect, sql: RunSql): MessageTable {
  const { columns } = layout;
  const table =
    layout.schema === undefined
      ? dialect.name(layout.table)
      : `${dialect.name(layout.schema)}.${dialect.name(layout.table)}`;
  const id = dialect.name(columns.id);
  const identityHash = dialect.identityHash(dialect.name(columns.messageType), dialect.name(columns.messageKey));

  function assignments(values: RowValues): [string, string][] {
    const list: [string, string][] = [];
    for (const [field, property, kind] of FIELDS) {
      const column = columns[property];
      const value = values[field];
      if (column === undefined || value === undefined) continue;
      list.push([dialect.name(column), written(dialect, kind, value)]);
    }
    const state = values.rawState ?? (values.state === undefined ? undefined : layout.states[values.state]);
    if (state !== undefined) {
      list.push([dialect.name(columns.state), typeof state === "number" ? String(state) : dialect.text(state)]);
    }
    return list;
  }

  async function put(rows: readonly RowValues[]): Promise<string[]> {
    let head = "";
    let tuples: string[] = [];
    const flush = async (): Promise<void> => {
      if (tuples.length > 0) await sql(`${head} VALUES ${tuples.join(",\n")}`);
      tuples = [];
    };
    for (const values of rows) {
      const list = assignments({ ...DEFAULTS, ...values });
      const columnsOfRow = `INSERT INTO ${table} (${list.map(([name]) => name).join(", ")})`;
      // Rows of one kind go in one statement; their order stays.
      if (columnsOfRow !== head) await flush();
      head = columnsOfRow;
      tuples.push(`(${list.map(([, value]) => value).join(", ")})`);
    }
    await flush();
    const { rows: newest } = await sql(`SELECT ${id} AS id FROM ${table} ORDER BY ${id} DESC LIMIT ${rows.length}`);
    return newest.map((row) => String(row["id"])).reverse();
  }

  async function find(wanted: string): Promise<SeenRow | undefined> {
    const fields = FIELDS.flatMap(([field, property, kind]) => {
      const column = columns[property];
      if (column === undefined) return [];
      return [
        `${kind === "instant" ? dialect.msUntil(dialect.name(column)) : dialect.name(column)} AS ${dialect.name(field)}`,
      ];
    });
    const { rows } = await sql(
      `SELECT ${dialect.name(columns.state)} AS state, ${identityHash} AS identity_hash, ${fields.join(", ")} FROM ${table} WHERE ${id} = ${wanted}`,
    );
    const row = rows[0];
    return row === undefined ? undefined : seenRow(layout, wanted, row);
  }

  return {
    put,
    async edit(wanted, values, run = sql) {
      const list = assignments(values).map(([name, value]) => `${name} = ${value}`);
      const { affected } = await run(`UPDATE ${table} SET ${list.join(", ")} WHERE ${id} = ${wanted}`);
      assert.equal(affected, 1, "the row that is edited by hand is there");
    },
    find,
    async row(wanted) {
      const row = await find(wanted);
      assert.ok(row !== undefined, `message ${wanted} is in the table`);
      return row;
    },
    async exact(wanted) {
      // Nobody's business, and only one engine has them.
      const listed = Object.entries(columns).filter(
        ([property, name]) => name !== undefined && !ENGINE_COLUMNS.has(property),
      );
      const { rows } = await sql(
        `SELECT ${listed.map(([property, name]) => `${dialect.name(String(name))} AS ${dialect.name(property)}`).join(", ")} FROM ${table} WHERE ${id} = ${wanted}`,
      );
      const row = rows[0];
      if (row === undefined) return undefined;
      return Object.fromEntries(Object.entries(row).map(([property, value]) => [property, plainText(value)]));
    },
    async count() {
      const { rows } = await sql(`SELECT COUNT(*) AS n FROM ${table}`);
      return Number(rows[0]?.["n"]);
    },
  };
}

function written(dialect: TestDialect, kind: Kind, value: string | number | null): string {
  if (value === null) return "NULL";
  if (kind === "text") return dialect.text(String(value));
  return kind === "count" ? String(value) : dialect.at(Number(value));
}

/** Drivers disagree about numbers, buffers and instants; as text they can be compared. */
function plainText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "bigint" ? String(value) : JSON.stringify(value);
}

function seenRow(layout: TableLayout, id: string, row: Readonly<Record<string, unknown>>): SeenRow {
  const text = (field: string): string | null => plainText(row[field]);
  const count = (field: string): number => Number(row[field] ?? 0);
  const ms = (field: string): number | null => (text(field) === null ? null : Number(row[field]));
  return {
    id,
    type: text("type") ?? "",
    key: text("key") ?? "",
    topic: text("topic") ?? "",
    body: text("body") ?? "",
    headers: text("headers"),
    contentType: text("contentType"),
    orderingKey: text("orderingKey"),
    state: MESSAGE_STATES.find((state) => String(layout.states[state]) === text("state")) ?? "unknown",
    retryCount: count("retryCount"),
    deliveryCount: count("deliveryCount"),
    lockVersion: count("lockVersion"),
    deliverInMs: ms("deliverInMs"),
    nextRetryInMs: ms("nextRetryInMs"),
    lastRetryInMs: ms("lastRetryInMs"),
    failReason: text("failReason"),
    messageId: text("messageId"),
    sentInMs: ms("sentInMs"),
    consumedInMs: ms("consumedInMs"),
    createdInMs: ms("createdInMs"),
    modifiedInMs: ms("modifiedInMs"),
    createdBy: text("createdBy"),
    updatedBy: text("updatedBy"),
    identityHash: text("identity_hash") ?? "",
  };
}
