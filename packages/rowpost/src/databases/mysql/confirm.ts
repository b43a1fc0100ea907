/**
 * Consumers' reports, in users' transactions. Independent of the session's time zone; checks its
 * character set.
 */
import { allowedFrom, type MessageState } from "../../message/states.ts";
import type { ConfirmStatements, Identity } from "../sql/confirm-statements.ts";
import type { UnknownStatements } from "../sql/unknown-statements.ts";
import { COMPANION_NOW, NOT_SAFE, whole } from "./clock.ts";
import { checked, IN_TRANSACTION, ownNow, ownSeconds } from "./enqueue.ts";
import { BYTES_COLLATION, type MysqlNames } from "./names.ts";
import { unknownStatements } from "./unknown.ts";

const OPEN: readonly MessageState[] = [...allowedFrom("confirm"), ...allowedFrom("confirmOvertakes")];
const IDENTITY_INDEX = "uk_type_key";
const IDS = "JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS j";

export function confirmStatements(names: MysqlNames): ConfirmStatements {
  const words = confirmWords(names);
  return { ...messageStatements(names, words), ...consumerStatements(names), ...unknownStatements(names) };
}

interface ConfirmWords {
  /** `SET` for a row that is only touched. */
  readonly touch: string;
  readonly consume: string;
  /** Condition that the row may become consumed. */
  readonly open: string;
  /** Condition that the session is in a transaction and stores text unchanged. */
  readonly fit: string;
  readonly now: string;
}

function confirmWords(names: MysqlNames): ConfirmWords {
  const { column, state } = names;
  const now = ownSeconds(names, ownNow(names));
  const touch = `${column("gmtModified")} = ${now}${names.bumpVersion}`;
  const consumedAt = names.has("consumedAt") ? `${column("consumedAt")} = ${now}, ` : "";
  return {
    now,
    touch,
    consume: `${consumedAt}${column("nextRetryAt")} = NULL, ${touch}, ${column("state")} = ${state("consumed")}`,
    open: `${column("state")} IN (${names.states(OPEN)})`,
    fit: checked("TRUE", false, IN_TRANSACTION),
  };
}

/** Forces one lookup in the unique index per identity. */
function byIdentity({ column, layout, messages }: MysqlNames): string {
  const text = (length: number): string => `VARCHAR(${length}) CHARACTER SET utf8mb4 COLLATE ${BYTES_COLLATION}`;
  return `JSON_TABLE(?, '$[*]' COLUMNS (type ${text(layout.limits.type)} PATH '$[0]', name ${text(layout.limits.key)} PATH '$[1]')) AS j
  STRAIGHT_JOIN ${messages} AS m FORCE INDEX (${IDENTITY_INDEX})
    ON ${column("messageType")} = j.type AND ${column("messageKey")} = j.name`;
}

const idParam = (ids: readonly string[]): string => `[${ids.join(",")}]`;
const pairs = (list: readonly Identity[]): string[] => list.flatMap(({ type, key }) => [type, key]);
const jsonPairs = (list: readonly Identity[]): string => JSON.stringify(list.map(({ type, key }) => [type, key]));

type OfMessages =
  | "confirmIdentities"
  | "lockIdentities"
  | "confirmRows"
  | "confirmArchived"
  | "touchRows"
  | "reportFailed";

function messageStatements(names: MysqlNames, words: ConfirmWords): Pick<ConfirmStatements, OfMessages> {
  const { archive, column, messages, state } = names;
  const { consume, fit, now, open, touch } = words;
  const same = `${column("messageType")} = ? AND ${column("messageKey")} = ?`;
  const columns = `CAST(${column("id")} AS CHAR) AS id, ${column("messageType")} AS messagetype, ${column("messageKey")} AS messagekey,
    ${column("state")} AS state, ${names.select("deliveryCount", "deliverycount", "0")}`;
  const isDefault = names.layout.name === "default";

  /**
   * Locks the rows in the order of confirmIdentities until the transaction ends; other
   * confirmations and settles of them wait. If we die right after it, nothing has changed.
   */
  function lockIdentities(list: readonly Identity[], place: "messages" | "archive") {
    if (place === "messages" && isDefault) {
      const lock = `SELECT ${columns} FROM ${byIdentity(names)} WHERE ${fit} FOR UPDATE /*!80000 OF m */`;
      return { name: "lockIdentities", text: lock, params: [jsonPairs(list)] };
    }
    const from = place === "messages" ? messages : archive;
    // One SELECT per identity, as in findIdentities of enqueue.ts: OR may lock the whole index.
    const one = (_: Identity, index: number): string =>
      `(SELECT ${columns} FROM ${from} AS m WHERE ${index === 0 ? `${fit} AND ` : ""}${same} FOR UPDATE)`;
    return { name: `lockIdentities.${place}`, text: list.map(one).join("\n  UNION ALL "), params: pairs(list) };
  }

  return {
    /**
     * Locks the rows in identity order, as all confirmations do. A settle locks by id, so the two
     * can deadlock, and the victim tries again. If we die right after it, the transaction rolls
     * back, and the consumer confirms again.
     */
    confirmIdentities: isDefault
      ? (list) => ({
          name: "confirmIdentities",
          text: `${NOT_SAFE}UPDATE ${byIdentity(names)}
  SET ${consume}
  WHERE ${fit} AND ${open}`,
          params: [jsonPairs(list)],
        })
      : undefined,

    lockIdentities,

    /** lockIdentities has locked the rows. */
    confirmRows: (ids) => ({
      name: "confirmRows",
      text: `${NOT_SAFE}UPDATE ${IDS} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${consume}
  WHERE ${open}`,
      params: [idParam(ids)],
    }),

    /** lockIdentities has locked the rows. No other statement changes a row of the archive. */
    confirmArchived: (list) => ({
      name: "confirmArchived",
      text: `${NOT_SAFE}UPDATE /*+ SET_VAR(sql_safe_updates = 0) */ ${archive} AS m
  SET ${consume}
  WHERE (${list.map(() => `(${same})`).join(" OR ")}) AND ${open}`,
      params: pairs(list),
    }),

    /** lockIdentities has locked the rows. */
    touchRows: (ids) => ({
      name: "touchRows",
      text: `${NOT_SAFE}UPDATE ${IDS} STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${touch}`,
      params: [idParam(ids)],
    }),

    /** lockIdentities has locked the rows. */
    reportFailed: (rows) => ({
      name: "reportFailed",
      text: `${NOT_SAFE}UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', reason VARCHAR(${names.layout.failReasonLength}) CHARACTER SET utf8mb4 PATH '$[1]')) AS j
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("failReason")} = j.reason, ${column("nextRetryAt")} = ${now}, ${touch}
  WHERE ${column("state")} = ${state("sent")}`,
      params: [`[${rows.map(({ id, reason }) => `[${id},${JSON.stringify(reason)}]`).join(",")}]`],
    }),
  };
}

type OfConsumers = Exclude<keyof ConfirmStatements, OfMessages | keyof UnknownStatements>;

function consumerStatements({ confirmations, tableKey }: MysqlNames): Pick<ConfirmStatements, OfConsumers> {
  return {
    /** lockIdentities holds the messages, so no other transaction adds the same rows. */
    addConfirmations: (rows) => ({
      name: "addConfirmations",
      text: `INSERT INTO ${confirmations} (table_name, message, consumer, confirmed_at)
  VALUES ${rows.map(() => `(?, ?, ?, ${COMPANION_NOW})`).join(", ")}
  ON DUPLICATE KEY UPDATE consumer = VALUES(consumer)`,
      params: rows.flatMap(({ id, consumer }) => [tableKey, id, consumer]),
    }),

    /** A locking read sees committed data. The messages are locked already, so it does not wait. */
    readConfirmations: (ids) => ({
      name: "readConfirmations",
      text: `SELECT CAST(c.message AS CHAR) AS id, c.consumer AS consumer
  FROM ${IDS} STRAIGHT_JOIN ${confirmations} AS c FORCE INDEX (PRIMARY) ON c.table_name = ? AND c.message = j.id
  FOR UPDATE /*!80000 OF c */`,
      params: [idParam(ids), tableKey],
    }),

    /**
     * Locks entries from the oldest on; confirmations only add younger ones. If we die right after
     * it, the expired entries are gone.
     */
    forgetConfirmations: ({ olderThanMs, limit }) => ({
      name: "forgetConfirmations",
      text: `DELETE FROM ${confirmations} WHERE table_name = ? AND confirmed_at <= ${COMPANION_NOW} - INTERVAL ? * 1000 MICROSECOND
  ORDER BY confirmed_at LIMIT ${whole(limit)}`,
      params: [tableKey, olderThanMs],
    }),
  };
}
