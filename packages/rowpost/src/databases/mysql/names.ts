/**
 * A layout in MySQL's words. The message row is always `m`, the shard's lease row `s`, the row of a
 * JSON_TABLE `j`.
 */
import type { MessageState } from "../../message/states.ts";
import type { Fence, RowToken } from "../../relay/store.ts";
import { inIdOrder } from "../../runtime/compare-ids.ts";
import { BEHIND_BASE } from "../sql/behind.ts";
import type { LayoutColumns, TableLayout } from "../sql/layout.ts";
import { companionTables, formerTables, hasClaimToken, tableKey } from "../sql/layouts.ts";
import { isLeaseKey, leaseKey, likePattern, type OwnTopics, ofTopics } from "../sql/own-topics.ts";
import { type ClockWords, clockWords } from "./clock.ts";

/**
 * Collation of identity columns: compares bytes without padding (rule: exact-bytes). Each server
 * reads its own name and skips the other.
 */
export const BYTES_COLLATION = "/*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */";

export const IDENTITY: string = `CHARACTER SET utf8mb4 COLLATE ${BYTES_COLLATION}`;

export const OPEN_KEY_INDEX = "idx_open_key";
export const TABLE_OPTIONS = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 ROW_FORMAT=DYNAMIC";

/** States of rows that may stand in front of others with their ordering key. */
export const UNFINISHED: readonly MessageState[] = ["pending", "sending", "suspended", "failed"];

interface Words {
  readonly layout: TableLayout;
  readonly tableKey: string;
  /** Value of `table_name` in the lease rows and the registry of these relays (own-topics.ts). */
  readonly leaseKey: string;
  /** Condition that `table_name` is the lease key of a relay of this table, whatever its topics. */
  readonly isLeaseKey: string;
  /** ` AND …` or "": row `m` belongs to a topic of these relays. */
  readonly ofTopics: string;
  readonly messages: string;
  /**
   * The message table joined by id. FORCE INDEX, because with few rows or stale statistics the
   * optimizer walks the whole table and locks other rows.
   */
  readonly byId: string;
  readonly archive: string;
  readonly shards: string;
  readonly relays: string;
  readonly suspensions: string;
  readonly audit: string;
  readonly confirmations: string;
  readonly unmatched: string;
  readonly sessions: string;
  readonly alerts: string;
  readonly silences: string;
  readonly formerTables: readonly string[];
  readonly migrations: string;
  /** The body as it is read; bytes for a column of bytes. */
  readonly body: string;
  /** The headers as they are read; undefined if the layout has none. */
  readonly headers: string | undefined;
  /** `m.`column``; throws for a column that the layout lacks. */
  readonly column: (name: keyof LayoutColumns) => string;
  readonly has: (name: keyof LayoutColumns) => boolean;
  /** `column AS alias`, with this expression for a missing column. */
  readonly select: (name: keyof LayoutColumns, alias: string, otherwise: string) => string;
  readonly state: (state: MessageState) => string;
  readonly states: (states: readonly MessageState[]) => string;
}

interface DelayWords {
  /**
   * ` AND …` or "": the row is not delayed. Without deliver_at, a suspension would overwrite the
   * delay in next_retry_at (rule: delay-is-not-retry). A row that is set behind is not delayed.
   */
  readonly notDelayed: string;
}

interface FenceWords {
  /** The message's shard, from the bytes of its ordering key or message key. */
  readonly shardOf: string;
  /**
   * Rows of one call as a JSON array of [id, shard, epoch, token, identity hash, …more], in lock
   * order: by id, or by shard and id. Leaves out shards that are not held.
   */
  readonly fencedRows: <Row extends RowToken>(
    fence: Fence,
    rows: readonly Row[],
    more?: (row: Row) => readonly unknown[],
    order?: "id" | "shard",
  ) => string;
  /**
   * `j` of fencedRows joined with `s`. Takes one `?` each for the JSON, the table key and the
   * owner. `more`: JSON_TABLE columns.
   */
  readonly fencedSource: (more?: string) => string;
  /** Columns of {@link RowToken} except id and shard. */
  readonly tokenColumns: string;
  /** The row is the message of `j.identity_hash`, at any version. */
  readonly isSameMessage: string;
  /** `AND …`: the row is that message, at the version of `j.token` if the layout has one. */
  readonly tokenMatches: string;
  /** `, m.lock_version = …` or "". */
  readonly bumpVersion: string;
  /** `, m.gmt_modified = now`. */
  readonly touch: string;
}

export type MysqlNames = Words & ClockWords & FenceWords & DelayWords;

export function quoteName(name: string): string {
  return `\`${name}\``;
}

/**
 * Doubling quotes is enough, on a user's session too: ours do not set NO_BACKSLASH_ESCAPES, and
 * names contain no backslash.
 */
function quoteText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

export function createNames(layout: TableLayout, topics?: OwnTopics): MysqlNames {
  const words = quoteWords(layout, topics);
  const clock = clockWords(layout, words.has("deliverAt") ? words.column("deliverAt") : undefined);
  return { ...words, ...clock, ...fenceWords(words, clock), notDelayed: notDelayed(words, clock) };
}

function quoteWords(layout: TableLayout, topics: OwnTopics): Words {
  const { columns } = layout;
  const companions = companionTables(layout);
  const qualify = (table: string): string =>
    layout.schema === undefined ? quoteName(table) : `${quoteName(layout.schema)}.${quoteName(table)}`;

  function column(name: keyof LayoutColumns): string {
    const found = columns[name];
    if (found === undefined) throw new Error(`the layout ${layout.name} has no column ${name}`);
    return `m.${quoteName(found)}`;
  }
  const has = (name: keyof LayoutColumns): boolean => columns[name] !== undefined;
  // JSON comes as text or as a value, depending on the driver's settings.
  const stored = (name: keyof LayoutColumns, type: TableLayout["bodyType"]): string =>
    type === "json" ? `CAST(${column(name)} AS CHAR)` : column(name);

  function state(value: MessageState): string {
    const encoded = layout.states[value];
    return typeof encoded === "number" ? String(encoded) : quoteText(encoded);
  }

  return {
    layout,
    tableKey: tableKey(layout),
    leaseKey: leaseKey(layout, topics),
    isLeaseKey: isLeaseKey(layout, quoteText),
    ofTopics: ofTopics(topics, (pattern) => {
      const literal = quoteText(likePattern(pattern).replaceAll("\\", "\\\\"));
      return `CONVERT(${column("topic")} USING utf8mb4) COLLATE utf8mb4_bin LIKE ${literal} ESCAPE '!'`;
    }),
    messages: qualify(layout.table),
    byId: `${qualify(layout.table)} AS m FORCE INDEX (PRIMARY)`,
    archive: qualify(companions.archive),
    shards: qualify(companions.shard),
    relays: qualify(companions.relay),
    suspensions: qualify(companions.suspension),
    audit: qualify(companions.audit),
    confirmations: qualify(companions.confirmation),
    unmatched: qualify(companions.unmatched),
    sessions: qualify(companions.session),
    alerts: qualify(companions.alert),
    silences: qualify(companions.silence),
    formerTables: formerTables(layout).map(qualify),
    migrations: qualify(companions.migration),
    body: stored("messageBody", layout.bodyType),
    headers: has("headers") ? stored("headers", layout.headersType) : undefined,
    column,
    has,
    select: (name, alias, otherwise) => `${has(name) ? column(name) : otherwise} AS ${alias}`,
    state,
    states: (list) => list.map(state).join(", "),
  };
}

function notDelayed({ column, has, state }: Words, { nowMs }: ClockWords): string {
  if (has("deliverAt")) return "";
  const isPending = `${column("state")} = ${state("pending")}`;
  const neverTried = `COALESCE(${column("retryCount")}, 0) = 0`;
  return `\n    AND NOT (${isPending} AND ${neverTried} AND COALESCE(${column("nextRetryAt")} > ${nowMs} AND ${column("nextRetryAt")} < '${BEHIND_BASE}', FALSE))`;
}

function fenceWords({ column, has, layout, select, shards }: Words, { now }: ClockWords): FenceWords {
  // '': a row without a key needs an owner too, which fails it.
  const orderingKey = `COALESCE(${has("orderingKey") ? `${column("orderingKey")}, ` : ""}${column("messageKey")}, '')`;
  /*
   * An UPDATE of 500 rows on MariaDB, in ms: 4.7 without, 4.8 with this, 5.4 with type and key in
   * the JSON as text. 63 bits fit a signed number.
   */
  const identityHash = `((COALESCE(CRC32(${column("messageType")}), 0) << 31) ^ COALESCE(CRC32(${column("messageKey")}), 0))`;
  const isSameMessage = `${identityHash} = j.identity_hash`;
  return {
    shardOf: `CRC32(CONVERT(${orderingKey} USING utf8mb4)) % 16`,
    fencedRows(fence, rows, more, order = "id") {
      const encoded: string[] = [];
      const ordered = inIdOrder(rows);
      if (order === "shard") ordered.sort((left, right) => left.shard - right.shard);
      for (const row of ordered) {
        const epoch = fence.epochs[row.shard];
        if (epoch === undefined) continue;
        const values = more === undefined ? [] : more(row).map((value) => `,${JSON.stringify(value)}`);
        encoded.push(`[${row.id},${row.shard},${epoch},${row.lockVersion},${row.identityHash}${values.join("")}]`);
      }
      return `[${encoded.join(",")}]`;
    },
    fencedSource: (more = "") =>
      "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', shard INT PATH '$[1]', epoch BIGINT PATH '$[2]', token BIGINT PATH '$[3]', identity_hash BIGINT PATH '$[4]'" +
      `${more})) AS j\n  STRAIGHT_JOIN ${shards} AS s\n` +
      "    ON s.table_name = ? AND s.shard = j.shard AND s.owner = ? AND s.epoch = j.epoch",
    tokenColumns: `${select("deliveryCount", "delivery_count", "0")}, ${select("lockVersion", "lock_version", "0")}, ${identityHash} AS identity_hash`,
    isSameMessage,
    tokenMatches: `AND ${hasClaimToken(layout) ? `COALESCE(${column("lockVersion")}, 0) = j.token AND ` : ""}${isSameMessage}`,
    bumpVersion: has("lockVersion") ? `, ${column("lockVersion")} = COALESCE(${column("lockVersion")}, 0) + 1` : "",
    touch: `, ${column("gmtModified")} = ${now}`,
  };
}
