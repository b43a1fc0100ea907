/**
 * Converts rows, under the aliases of statements.ts, to objects of the ports. Drivers disagree
 * about BIGINT (number, string, bigint), TINYINT and BOOLEAN.
 */

import type { MessageSummary, StoredMessage } from "../../admin/message-admin.ts";
import { bodyOf } from "../../message/binary-body.ts";
import type { MessageState } from "../../message/states.ts";
import { MESSAGE_STATES } from "../../message/states.ts";
import type {
  KeyQueueRow,
  RelayInstance,
  RelayReport,
  RelayStatus,
  RowNow,
  RowToken,
  ScannedMessage,
  SendingRow,
  SessionLock,
  ShardLease,
  SuspensionRule,
  TimedRow,
} from "../../relay/store.ts";
import { fromAscii, inAscii } from "../../runtime/ascii.ts";
import { headOfInstant } from "./behind.ts";
import type { TableLayout } from "./layout.ts";

export type Row = Readonly<Record<string, unknown>>;

/**
 * A user's handle may convert names to camelCase or PascalCase, which changes only the case of
 * single-word aliases.
 */
export function lowerCased(row: Row): Row {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Text of a column that is never NULL; reads a buffer (VARBINARY, BLOB) as UTF-8. */
export function text(row: Row, alias: string): string {
  const value = row[alias];
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  throw new Error(
    `the statement returned ${value === null || value === undefined ? "no value" : typeof value} for ${alias}`,
  );
}

/** Text, or null for NULL or a missing alias. */
export function textOrNull(row: Row, alias: string): string | null {
  return isNull(row, alias) ? null : text(row, alias);
}

/** Text, or "" for NULL, which a user's own table may allow. */
export function textOrEmpty(row: Row, alias: string): string {
  return textOrNull(row, alias) ?? "";
}

/** A whole number below 2^53; 0 for NULL. */
export function integer(row: Row, alias: string): number {
  const value = row[alias];
  return typeof value === "number" ? value : Number(value ?? 0);
}

function isNull(row: Row, alias: string): boolean {
  return row[alias] === null || row[alias] === undefined;
}

/** 1, "1", 1n or true. */
function flag(row: Row, alias: string): boolean {
  const value = row[alias];
  return value === true || Number(value ?? 0) === 1;
}

/** A 64-bit whole number as a decimal string; "0" for NULL. */
export function wholeText(row: Row, alias: string): string {
  return textOrNull(row, alias) ?? "0";
}

function tokenOf(row: Row): Pick<RowToken, "deliveryCount" | "identityHash" | "lockVersion"> {
  return {
    deliveryCount: integer(row, "delivery_count"),
    lockVersion: wholeText(row, "lock_version"),
    identityHash: text(row, "identity_hash"),
  };
}

export function decodeState(layout: TableLayout, value: unknown): MessageState | "unknown" {
  const found = MESSAGE_STATES.find((state) => String(layout.states[state]) === String(value));
  return found ?? "unknown";
}

/** For statements that select known states. */
function knownState(layout: TableLayout, row: Row): MessageState {
  const state = decodeState(layout, row["state"]);
  // A folding collation matches `Pending` for `pending`; the statement selected this state.
  if (state !== "unknown") return state;
  const folded = String(row["state"]).toLowerCase();
  return MESSAGE_STATES.find((each) => String(layout.states[each]).toLowerCase() === folded) ?? "pending";
}

/** The body as read; for a column of bytes as base64, which PostgreSQL returns itself. */
export function storedBody({ bodyType }: Pick<TableLayout, "bodyType">, row: Row): string | null {
  const value = row["message_body"];
  const isBytes = bodyType === "binary" && value instanceof Uint8Array;
  return isBytes ? Buffer.from(value).toString("base64") : textOrNull(row, "message_body");
}

export function scannedMessage(layout: Pick<TableLayout, "bodyType">, row: Row): ScannedMessage {
  // NULL also means a body too large for this scan, or of a shard that was not requested.
  const isBodyNull = isNull(row, "message_body") && isNull(row, "body_bytes");
  return {
    id: text(row, "id"),
    shard: integer(row, "shard"),
    type: textOrEmpty(row, "message_type"),
    key: textOrEmpty(row, "message_key"),
    topic: textOrEmpty(row, "topic"),
    body: isBodyNull ? "" : storedBody(layout, row),
    isBodyNull,
    bodyBytes: integer(row, "body_bytes"),
    headers: textOrNull(row, "headers"),
    contentType: textOrNull(row, "content_type"),
    orderingKey: textOrNull(row, "ordering_key"),
    retryCount: integer(row, "retry_count"),
    deliveryCount: integer(row, "delivery_count"),
    lockVersion: wholeText(row, "lock_version"),
    identityHash: text(row, "identity_hash"),
    resend: flag(row, "resend"),
    waitingMs: Math.max(0, integer(row, "waiting_ms")),
    due: flag(row, "due"),
  };
}

export function keyQueueRow(layout: TableLayout, row: Row): KeyQueueRow {
  return {
    orderingKey: text(row, "ordering_key"),
    id: text(row, "id"),
    state: knownState(layout, row),
    due: flag(row, "due"),
    resend: flag(row, "resend"),
    retryCount: integer(row, "retry_count"),
    type: textOrEmpty(row, "message_type"),
  };
}

export function rowNow(layout: TableLayout, row: Row): RowNow {
  return {
    id: text(row, "id"),
    state: decodeState(layout, row["state"]),
    ...tokenOf(row),
  };
}

export function sendingRow(row: Row): SendingRow {
  return {
    id: text(row, "id"),
    shard: integer(row, "shard"),
    ...tokenOf(row),
    topic: textOrEmpty(row, "topic"),
  };
}

export function timedRow(layout: TableLayout, row: Row): TimedRow | undefined {
  const state = knownState(layout, row);
  if (state !== "sent" && state !== "failed" && state !== "suspended") return undefined;
  return {
    ...sendingRow(row),
    state,
    type: textOrEmpty(row, "message_type"),
    key: textOrEmpty(row, "message_key"),
    retryCount: integer(row, "retry_count"),
    ageMs: integer(row, "age_ms"),
    failReason: textOrNull(row, "fail_reason"),
  };
}

export function shardLease(row: Row): ShardLease {
  return {
    shard: integer(row, "shard"),
    owner: textOrNull(row, "owner") ?? undefined,
    epoch: wholeText(row, "epoch"),
    leaseUntil: text(row, "lease_until"),
    leaseMs: integer(row, "lease_ms"),
  };
}

function relayInstance(row: Row): RelayInstance {
  return { owner: text(row, "owner"), label: labelWithoutLock(text(row, "label")), alive: flag(row, "alive") };
}

/** An instance silent for this long is shown as gone. */
const INSTANCE_TIMEOUT_MS = 60_000;

export function relayStatus(row: Row): RelayStatus {
  const { label, owner } = relayInstance(row);
  const silentMs = integer(row, "silent_ms");
  const report = reportOf(textOrNull(row, "report"), integer(row, "report_age_ms"));
  return {
    owner,
    label,
    silentMs: Math.max(0, silentMs),
    alive: Math.abs(silentMs) < INSTANCE_TIMEOUT_MS,
    report,
    reportAgeMs: report === undefined ? undefined : integer(row, "report_age_ms"),
  };
}

/** Brings its durations up to date. Undefined for another version's format. */
function reportOf(json: string | null, ageMs: number): RelayReport | undefined {
  try {
    const { brokers, lastError, restingTopics, ...rest } = JSON.parse(json ?? "null") as RelayReport;
    return {
      ...rest,
      brokers: brokers.map((each) => ({
        ...each,
        awayForMs: each.awayForMs === undefined ? undefined : each.awayForMs + ageMs,
      })),
      restingTopics: restingTopics.map((each) => ({ ...each, restsForMs: Math.max(0, each.restsForMs - ageMs) })),
      lastError: lastError && { ...lastError, agoMs: lastError.agoMs + ageMs },
    };
  } catch {
    return undefined;
  }
}

/** Separates the label from the name of the session lock. */
const LOCK_MARK = " lock=";

/**
 * Value of the label column: at most 255 ASCII characters; a letter that the encoding lacks would
 * fail every heartbeat.
 */
export function labelWithLock(label: string, lock: string | undefined): string {
  const mark = `${LOCK_MARK}${lock ?? ""}`;
  return `${inAscii(label)
    .slice(0, 255 - mark.length)
    .replace(/\\u[\dA-F]{0,3}$/, "")}${mark}`;
}

export function labelWithoutLock(label: string): string {
  return fromAscii(parted(label)[0]);
}

function parted(label: string): readonly [words: string, lock: string] {
  const end = label.lastIndexOf(LOCK_MARK);
  return end === -1 ? [label, ""] : [label.slice(0, end), label.slice(end + LOCK_MARK.length)];
}

/** With the name of its session lock; undefined if its version wrote none. */
export function lockedInstance(row: Row): RelayInstance & SessionLock {
  return { ...relayInstance(row), lock: parted(text(row, "label"))[1] || undefined };
}

export function suspensionRule(row: Row): SuspensionRule {
  const endsIn = row["ends_in_ms"];
  return {
    scope: suspensionScope(text(row, "scope")),
    value: text(row, "value"),
    reason: text(row, "reason"),
    author: text(row, "author"),
    endsInMs: endsIn === null || endsIn === undefined ? null : Number(endsIn),
  };
}

const SCOPES: readonly SuspensionRule["scope"][] = ["ordering_key", "topic", "type", "relay"];

/**
 * An unknown scope, from a newer version, stops everything, because a rule always forbids sending
 * something.
 */
function suspensionScope(value: string): SuspensionRule["scope"] {
  return SCOPES.find((scope) => scope === value) ?? "relay";
}

/** With body and headers, from a statement that reads them. */
export function storedMessage(layout: TableLayout, row: Row, archived: boolean): StoredMessage {
  const headers = layout.columns.headers === undefined ? undefined : textOrNull(row, "headers");
  const summary = messageSummary(layout, row, archived);
  const stored = storedBody(layout, row) ?? "";
  if (layout.bodyType !== "binary") return { ...summary, body: stored, headers };
  return { ...summary, ...bodyOf(Buffer.from(stored, "base64"), summary.contentType ?? null), headers };
}

export function messageSummary(layout: TableLayout, row: Row, archived: boolean): MessageSummary {
  const columns = layout.columns;
  const optional = (column: string | undefined, alias: string): string | null | undefined =>
    column === undefined ? undefined : textOrNull(row, alias);
  const [state, next] = [decodeState(layout, row["state"]), textOrNull(row, "next_retry_at")];
  const behindId = state === "pending" ? headOfInstant(next) : undefined;
  const isOverdue = state === "sent" && next !== null && next >= "9999";
  return {
    id: text(row, "id"),
    type: textOrEmpty(row, "message_type"),
    key: textOrEmpty(row, "message_key"),
    topic: textOrEmpty(row, "topic"),
    state,
    rawState: String(row["state"]),
    contentType: optional(columns.contentType, "content_type"),
    orderingKey: optional(columns.orderingKey, "ordering_key"),
    retryCount: integer(row, "retry_count"),
    deliveryCount: columns.deliveryCount === undefined ? undefined : integer(row, "delivery_count"),
    deliverAt: optional(columns.deliverAt, "deliver_at"),
    // Our own instants at the end of time are shown by their meaning, never as a time.
    nextRetryAt: behindId !== undefined || isOverdue ? null : next,
    ...(isOverdue ? { confirmOverdue: true as const } : {}),
    behindId,
    lastRetryAt: optional(columns.lastRetryAt, "last_retry_at"),
    failReason: textOrNull(row, "fail_reason"),
    messageId: optional(columns.messageId, "message_id"),
    lockVersion: columns.lockVersion === undefined ? undefined : wholeText(row, "lock_version"),
    sentAt: optional(columns.sentAt, "sent_at"),
    consumedAt: optional(columns.consumedAt, "consumed_at"),
    createdBy: optional(columns.createdBy, "created_by"),
    updatedBy: optional(columns.updatedBy, "updated_by"),
    gmtCreate: textOrEmpty(row, "gmt_create"),
    gmtModified: textOrEmpty(row, "gmt_modified"),
    archived,
  };
}

/**
 * At most `length` code points, without lone surrogates: they are invalid UTF-8, and JSON_TABLE
 * refuses the whole statement.
 */
export function clip(value: string, length: number): string {
  const clean = value
    .replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, "\uFFFD")
    .replaceAll("\0", "");
  if (clean.length <= length) return clean;
  return Array.from(clean).slice(0, length).join("");
}
