/**
 * Shared statements of changes by hand. Those that write messages are in each dialect's admin.ts.
 */

import type { AuditResult } from "../../../admin/operations.ts";
import { ruleReason } from "../../../message/suspension-reason.ts";
import type { SuspensionRule } from "../../../relay/store.ts";
import { by, bytesOf, type Cold, cold, forUpdate, now, part, plain, type Sql, textOf } from "../cold.ts";
import type { MessageTable } from "../cold-table.ts";
import { clip } from "../rows.ts";

export interface AuditEntry {
  readonly action: string;
  readonly author: string;
  readonly reason: string;
  readonly changed: number;
  /** Changed messages in id order; undefined: not known one by one. */
  readonly ids: readonly string[] | undefined;
  /** JSON. */
  readonly details: string | undefined;
  /** Origin of the change: see `OperatorAction`. */
  readonly via: string | undefined;
  readonly result: AuditResult;
  /** JSON: the messages before the change. */
  readonly beforeImage: string | undefined;
}

/** Adds an audit row, which commits or rolls back with its change. */
export function recordChange({ companions, key }: MessageTable, entry: AuditEntry): Cold {
  const { action, author, beforeImage = null, changed, details = null, ids, reason, result, via = null } = entry;
  const listed = ids === undefined ? null : `[${ids.join(",")}]`;
  return cold(
    "recordChange",
  )`INSERT INTO ${companions.audit} (table_name, made_at, author, action, reason, changed, first_id, last_id, ids, details, via, result, before_image)
VALUES (${key}, ${now}, ${clip(author, 64)}, ${action}, ${clip(reason, 1_024)}, ${changed}, ${ids?.at(0) ?? null}, ${ids?.at(-1) ?? null}, ${listed}, ${details}, ${via}, ${result}, ${beforeImage})`;
}

function version({ has, name }: MessageTable): Sql {
  return part`${has("lockVersion") ? textOf(name("lockVersion")) : part`0`} AS lock_version`;
}

/**
 * Aliases: id state lock_version fail_reason. Locks these rows in id order, like every statement,
 * until the change in the same transaction. By the primary key: with few rows or stale statistics
 * MySQL walks the whole table and waits for other rows.
 */
export function lockRows(table: MessageTable, ids: readonly string[]): Cold {
  const { column, messages, name, words } = table;
  return cold(
    "lockRows",
  )`SELECT ${textOf(name("id"))} AS id, ${column("state")} AS state, ${version(table)}, ${column("failReason")} AS fail_reason
FROM ${messages} AS m${by("PRIMARY")} WHERE ${plain(words.idIn(name("id"), ids))} ORDER BY ${column("id")}${forUpdate}`;
}

type RuleName = Pick<SuspensionRule, "scope" | "value">;

/**
 * Aliases: scope value reason author ends_in_ms (NULL: until lifted). Locks the rule; the later of
 * two parallel changes sees the first one's.
 */
export function lockSuspension({ companions, key, words }: MessageTable, { scope, value }: RuleName): Cold {
  return cold(
    "lockSuspension",
  )`SELECT r.scope AS scope, r.value AS value, r.reason AS reason, r.author AS author, ${plain(words.msUntil("r.ends_at"))} AS ends_in_ms
FROM ${companions.suspension} AS r WHERE r.table_name = ${key} AND r.scope = ${scope} AND r.value = ${value}${forUpdate}`;
}

/** Locks its one rule; later statements resume its messages. */
export function deleteSuspension({ companions, key }: MessageTable, { scope, value }: RuleName): Cold {
  return cold(
    "deleteSuspension",
  )`DELETE FROM ${companions.suspension} WHERE table_name = ${key} AND scope = ${scope} AND value = ${value}`;
}

/** Aliases: id lock_version. Rows suspended by this rule, found by the beginning of fail_reason. */
export function listSuspendedBy(table: MessageTable, { limit, ...rule }: RuleName & { readonly limit: number }): Cold {
  const { column, layout, messages, name, state, words } = table;
  const reason = clip(ruleReason(rule), layout.failReasonLength);
  return cold("listSuspendedBy")`SELECT ${textOf(name("id"))} AS id, ${version(table)} FROM ${messages} AS m
WHERE ${column("state")} = ${state("suspended")} AND ${plain(words.indexOf)}(${bytesOf(name("failReason"))}, ${reason}) = 1
ORDER BY ${column("id")} LIMIT ${limit}`;
}
