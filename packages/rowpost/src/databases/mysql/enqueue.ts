/**
 * Writes messages in a user's transaction. Independent of the session's time zone; checks its
 * character set and sql_mode.
 */
import { bareType, bytesOf } from "../../message/binary-body.ts";
import type { EncodedMessage } from "../../outbox/message-writer.ts";
import { ConfigurationError, type RowpostError, SchemaError } from "../../runtime/errors.ts";
import { LenientSessionError } from "../sql/column-room.ts";
import type { TableLayout } from "../sql/layout.ts";
import { literal } from "../sql/sql-names.ts";
import { type EnqueueStatements, UNASKED } from "../sql/statements.ts";
import { WITHOUT_KEY } from "../sql/table-findings.ts";
import { utcOfEpochMs, wallClockOnce } from "./clock.ts";
import { errorMentions, errorNumber } from "./errors.ts";
import { type MysqlNames, quoteName } from "./names.ts";

interface Field {
  readonly column: string;
  readonly sql: string;
  /**
   * Appends this value's parameters. One list per value cost a third of the call (100 messages,
   * Node 20: 1.4 of 3.3 us each).
   */
  readonly bind?: (message: EncodedMessage, params: unknown[]) => void;
}

export function enqueueStatements(names: MysqlNames): EnqueueStatements {
  const { column, messages } = names;
  const { schema, table } = names.layout;
  const plain = fields(names, false);
  const delayed = fields(names, true);
  const stateColumn = quoteName(names.layout.columns.state);
  const withoutKey = noUniqueKey(names.layout);
  const find = `SELECT ${column("messageType")} AS messagetype, ${column("messageKey")} AS messagekey FROM ${messages} AS m`;
  const same = `${column("messageType")} = ? AND ${column("messageKey")} = ?`;
  /** The connection may use another database, where the table has other columns. */
  const strictOr = (fitsIn: string | undefined): string => {
    if (fitsIn === undefined) return STRICT;
    if (schema !== undefined) return "";
    return strict(` OR CAST(DATABASE() AS BINARY) = X'${Buffer.from(fitsIn).toString("hex")}'`);
  };
  const identities = (list: readonly EncodedMessage[]): { where: string; params: unknown[] } => ({
    where: list.map(() => `(${same})`).join(" OR "),
    params: list.flatMap((message) => [message.type, message.key]),
  });

  return {
    /**
     * Multi-row VALUES. The first row's state precedes all user values and carries the session
     * check (see `checked`): about 16 us a statement on MariaDB 10.11 and 9 to 18 on MySQL, where a
     * lone INSERT takes 65 and 104. A sub-query of two rows was 1.5 to 2 times as slow.
     */
    insert(list, { asked, fitsIn, looksForKey } = UNASKED) {
      const chosen = list.some((message) => message.delayMs !== null || message.deliverAtMs !== null) ? delayed : plain;
      const params: unknown[] = [];
      for (const message of list) for (const { bind } of chosen) bind?.(message, params);
      const pending = names.state("pending");
      const values = chosen.map(({ sql }) => sql).join(", ");
      return {
        name: list.length === 1 ? "insertMessage" : "insertMessages",
        text: `INSERT INTO ${messages} (${[stateColumn, ...chosen.map((field) => quoteName(field.column))].join(", ")})
  VALUES (${checked(pending, asked, `${IN_TRANSACTION}${strictOr(fitsIn)}${looksForKey === true ? withoutKey : ""}`)}, ${values})${`, (${pending}, ${values})`.repeat(list.length - 1)}`,
        params,
      };
    },

    /**
     * Locks the rows in share mode, which reads committed data even in an older REPEATABLE READ
     * transaction. One SELECT per identity locks its row only; OR read the whole index of a small
     * table for three rows, locked every gap, and blocked all enqueues. 1,000 identities take 45
     * ms. A missing identity leaves a gap lock.
     */
    findIdentities(list, { asked } = UNASKED) {
      const first = asked ? `${notEnded("TRUE")} AND ` : "";
      return {
        name: "findIdentities",
        text: list
          .map((_, index) => `(${find} WHERE ${index === 0 ? first : ""}${same} LOCK IN SHARE MODE)`)
          .join("\n  UNION ALL "),
        params: identities(list).params,
      };
    },

    /**
     * A consistent read without locks. In REPEATABLE READ on MySQL 8 and 9 an INSERT that fails on
     * a duplicate blocks all other INSERTs until its transaction ends, so ignored duplicates must
     * not reach it. Elsewhere a constant condition makes this read nothing: on MariaDB a failed
     * INSERT blocks only its neighbors, and a read view could fail the user's later statements
     * (innodb_snapshot_isolation); in SERIALIZABLE a plain read locks rows and gaps; in READ
     * COMMITTED nothing is blocked. Runs before the INSERT, so it checks the session itself.
     */
    seeIdentities: (list, { asked } = UNASKED) => {
      const { where, params } = identities(list);
      return {
        name: "seeIdentities",
        text: `${find}
  WHERE ${checked("TRUE", asked)} /*M! AND FALSE */ /*!80000 AND @@transaction_isolation = 'REPEATABLE-READ' */ AND (${where})`,
        params,
      };
    },

    readRoom: ({ asked }) => ({
      name: "readRoom",
      text: `SELECT c.TABLE_SCHEMA AS databasename, c.COLUMN_NAME AS columnname, c.CHARACTER_MAXIMUM_LENGTH AS characters, c.CHARACTER_OCTET_LENGTH AS bytes,
    c.CHARACTER_SET_NAME AS charsetname, c.DATA_TYPE AS datatype
  FROM information_schema.COLUMNS AS c
  WHERE ${asked ? `${notEnded("TRUE")} AND ` : ""}c.TABLE_SCHEMA = ${schema === undefined ? "DATABASE()" : "?"} AND c.TABLE_NAME = ?`,
      params: [...(schema === undefined ? [] : [schema]), table],
    }),

    /** Locks rows that this transaction has inserted. */
    deleteIdentities(list, { asked } = UNASKED) {
      const { where, params } = identities(list);
      // Only in an open transaction; elsewhere the statement would commit by itself.
      const isOpen = `/*M! (@@in_transaction = 1 OR @@autocommit = 0) AND */ ${asked ? `${notEnded("TRUE")} AND ` : ""}`;
      return { name: "deleteIdentities", text: `DELETE m FROM ${messages} AS m WHERE ${isOpen}(${where})`, params };
    },
  };
}

/**
 * With autocommit off every statement is in a transaction, but the variable shows it only after the
 * first. An executable comment for MariaDB: MySQL lacks the variable, and there the executor knows.
 */
export const IN_TRANSACTION = " /*M! WHEN @@in_transaction = 0 AND @@autocommit = 1 THEN EXP(999) */";

/**
 * For later statements of the same call. ROW_COUNT() describes the connection's previous statement:
 * 1 after the check, the row count of a change, -1 after a SELECT or an error, 0 after COMMIT,
 * ROLLBACK, ROLLBACK TO and BEGIN. A value other than 0 proves that the transaction goes on.
 */
export const NOT_ENDED = " WHEN ROW_COUNT() = 0 THEN EXP(999)";

export function notEnded(value: string): string {
  return `CASE WHEN FALSE THEN FALSE${NOT_ENDED} ELSE ${value} END`;
}

/**
 * Without these modes the server cuts long values and replaces letters that the character set
 * lacks. EMPTY_STRING_IS_NULL (MariaDB) turns an empty body into NULL.
 */
const strict = (or: string): string => `
    WHEN NOT (FIND_IN_SET('STRICT_TRANS_TABLES', @@sql_mode) OR FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode)${or}) THEN EXP(996)`;
export const STRICT: string = strict("");
const EMPTY_AS_NULL = " /*M! WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@sql_mode) THEN EXP(995) */";

/**
 * Without a unique key over type and key, a duplicate becomes another message. The catalog shows a
 * table's keys to every user with INSERT on it. A view has none and is accepted. Checked once per
 * process.
 */
function noUniqueKey({ columns, schema, table }: TableLayout): string {
  const keys = `FROM information_schema.STATISTICS AS k
      WHERE k.TABLE_SCHEMA = ${schema === undefined ? "DATABASE()" : literal(schema)} AND k.TABLE_NAME = ${literal(table)}`;
  const identity = [columns.messageType, columns.messageKey].map(literal).join(", ");
  return `
    WHEN EXISTS (SELECT 1 ${keys}) AND NOT EXISTS (SELECT 1 ${keys} AND k.NON_UNIQUE = 0
      GROUP BY k.INDEX_NAME HAVING SUM(COALESCE(k.COLUMN_NAME NOT IN (${identity}), 1)) = 0) THEN EXP(994)`;
}

/**
 * `value`, or an error if the session would alter values (rule: exact-text); `more` adds cases.
 * Evaluated before any user value takes effect. EXP(994) and above are out of range, so the
 * statement changes nothing. The check for an ended transaction is first: any other error sets
 * ROW_COUNT() to -1, and the retry in a lenient session would run in the next transaction.
 */
export function checked(value: string, asked: boolean, more = ""): string {
  return `CASE${asked ? NOT_ENDED : ""} WHEN @@character_set_client <> 'utf8mb4' OR @@character_set_connection <> 'utf8mb4' THEN EXP(998)
    WHEN FIND_IN_SET('NO_BACKSLASH_ESCAPES', @@sql_mode) THEN EXP(997)${EMPTY_AS_NULL}${more} ELSE ${value} END`;
}

/**
 * Whether this case of the check failed: errno 1690 with the expression, unlike a user's
 * out-of-range value.
 */
function answersCase(error: unknown, number: 994 | 995 | 996 | 997 | 998 | 999): boolean {
  return errorNumber(error) === 1690 && errorMentions(error, `exp(${number})`);
}

export function isOutsideTransaction(error: unknown): boolean {
  return answersCase(error, 999);
}

export function unfitSession(error: unknown): RowpostError | undefined {
  if (answersCase(error, 994)) return new SchemaError(WITHOUT_KEY, { cause: error });
  if (answersCase(error, 998) || INCONVERTIBLE.has(errorNumber(error))) {
    return new ConfigurationError(
      'this connection does not carry text in utf8mb4, so that letters would be stored as other ones: set charset: "utf8mb4" in the options of the pool or ORM, and send no other SET NAMES. Nothing was written.',
      { cause: error },
    );
  }
  if (answersCase(error, 996)) {
    return new LenientSessionError(
      "the sql_mode of this connection has no STRICT_TRANS_TABLES, so that the server stores what does not fit in another form and says nothing, and the columns of the message table cannot be read to check it before: set the mode, or grant a right on the table. Nothing was written.",
      { cause: error },
    );
  }
  if (answersCase(error, 995)) {
    return new ConfigurationError(
      "the sql_mode of this connection has EMPTY_STRING_IS_NULL, under which an empty text is stored as NULL: take the mode out. Nothing was written.",
      { cause: error },
    );
  }
  if (answersCase(error, 997) || UNREADABLE.has(errorNumber(error))) {
    return new ConfigurationError(
      "a value would not stay one value in the text of a statement: the sql_mode of this connection has NO_BACKSLASH_ESCAPES, which its driver does not mind; take the mode out (SET SESSION sql_mode = …, or on the server). Nothing was written.",
      { cause: error },
    );
  }
  return undefined;
}

/**
 * Errors before the check is reached: no such conversion (3988, 3854, 1300), or none between these
 * collations (1267).
 */
const INCONVERTIBLE = new Set([3988, 3854, 1300, 1267]);
/** A value broke our statement. */
const UNREADABLE = new Set([1064, 1136]);

function fields(names: MysqlNames, delayed: boolean): readonly Field[] {
  const { layout } = names;
  const list: Field[] = [];
  function add(property: keyof typeof layout.columns, sql: string, bind?: Field["bind"]): void {
    const column = layout.columns[property];
    if (column !== undefined) list.push(bind === undefined ? { column, sql } : { column, sql, bind });
  }
  add("messageType", "?", ({ type }, params) => params.push(type));
  add("messageKey", "?", ({ key }, params) => params.push(key));
  add("topic", "?", ({ topic }, params) => params.push(topic));
  const isBinary = layout.bodyType === "binary";
  // Every driver and ORM binds text, but not every one binds a Buffer.
  if (isBinary)
    add("messageBody", "FROM_BASE64(?)", (message, params) => params.push(bytesOf(message).toString("base64")));
  else add("messageBody", "?", ({ body }, params) => params.push(body));
  add("headers", "?", ({ headers }, params) => params.push(headers));
  add("contentType", "?", (message, params) => params.push(isBinary ? bareType(message) : message.contentType));
  add("orderingKey", "?", ({ orderingKey }, params) => params.push(orderingKey));
  add("createdBy", "?", ({ createdBy }, params) => params.push(createdBy));
  add("updatedBy", "?", ({ createdBy }, params) => params.push(createdBy));
  const instant = ownSeconds(names, ownNow(names));
  add("gmtCreate", instant);
  add("gmtModified", instant);
  if (delayed) {
    // Parameters: delay in milliseconds, else epoch milliseconds, else NULL twice.
    const utc = `COALESCE(UTC_TIMESTAMP(3) + INTERVAL (? * 1000) MICROSECOND, ${utcOfEpochMs("?")})`;
    const isUtc = layout.clock === "utc";
    const at = notEarly(names, isUtc ? utc : wallClockOnce(utc, "@@global.time_zone"));
    const bind: Field["bind"] = isUtc
      ? ({ delayMs, deliverAtMs }, params) => params.push(delayMs, deliverAtMs)
      : ({ delayMs, deliverAtMs }, params) => params.push(delayMs, deliverAtMs, delayMs, deliverAtMs);
    add("deliverAt", at, bind);
    add("nextRetryAt", at, bind);
  }
  return list;
}

/**
 * Current time on the clock of the table. NOW() would depend on the time zone of the user's
 * session.
 */
export function ownNow({ layout }: MysqlNames): string {
  return layout.clock === "utc" ? "UTC_TIMESTAMP(3)" : "CONVERT_TZ(UTC_TIMESTAMP(3), '+00:00', @@global.time_zone)";
}

/** Cuts the fraction off if the column has none: MySQL would round it up, into the future. */
export function ownSeconds(names: MysqlNames, instant: string): string {
  return names.layout.fractionDigits === 3 ? instant : `${instant} - INTERVAL MICROSECOND(${instant}) MICROSECOND`;
}

/** Next whole second if the column has no fraction, so never early. */
function notEarly(names: MysqlNames, instant: string): string {
  if (names.layout.fractionDigits === 3) return instant;
  // Adds 999,999 microseconds and cuts the fraction off as text, so the expression occurs only
  // once.
  return `DATE_FORMAT(${instant} + INTERVAL 999999 MICROSECOND, '%Y-%m-%d %H:%i:%s')`;
}
