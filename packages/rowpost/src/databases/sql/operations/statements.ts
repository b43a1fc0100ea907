import type { AuditFilter, NewSession } from "../../../admin/operations.ts";
import { after, by, bytesOf, type Cold, cold, id, iso, joined, now, part, textOf, unsought } from "../cold.ts";
import type { MessageTable } from "../cold-table.ts";

/**
 * Aliases: id made_at (ISO text) author via action reason result changed ids before_image details.
 * Newest first, along the primary key; otherwise SQLite sorts all entries of the table.
 */
export function readAudit(
  { companions, key }: MessageTable,
  {
    beforeId,
    filter: { action, author, result },
    limit,
  }: { readonly filter: AuditFilter; readonly beforeId: string | undefined; readonly limit: number },
): Cold {
  const given = Object.entries({ author, action, result });
  const conditions = given.flatMap(([column, value]) =>
    value === undefined ? [] : [part`${bytesOf(`a.${column}`)} = ${value}`],
  );
  if (beforeId !== undefined) conditions.push(part`a.id < ${id(beforeId)}`);
  return cold(
    "readAudit",
  )`SELECT ${textOf("a.id")} AS id, ${iso("a.made_at")} AS made_at, a.author AS author, a.via AS via, a.action AS action,
  a.reason AS reason, a.result AS result, a.changed AS changed, a.ids AS ids, a.before_image AS before_image, a.details AS details
FROM ${companions.audit} AS a${by("PRIMARY")}
WHERE ${joined([part`${unsought("a.table_name")} = ${key}`, ...conditions], " AND ")}
ORDER BY a.id DESC LIMIT ${limit}`;
}

/**
 * Inserts one row. If we die right after it, no browser has the session, and it expires by itself.
 */
export function addSession({ companions }: MessageTable, { hash, holder, lifeMs }: NewSession): Cold {
  return cold("addSession")`INSERT INTO ${companions.session} (hash, holder, seen_at, ends_at)
VALUES (${hash}, ${holder}, ${now}, ${after(lifeMs)})`;
}

/** Alias: holder. Returns no row when the session does not exist or has ended. */
export function readSession(
  { companions }: MessageTable,
  { hash, idleMs }: { readonly hash: string; readonly idleMs: number },
): Cold {
  return cold("readSession")`SELECT s.holder AS holder FROM ${companions.session} AS s
WHERE s.hash = ${hash} AND s.ends_at > ${now} AND s.seen_at > ${after(-idleMs)}`;
}

/**
 * Marks the session as seen, unless that happened less than `afterMs` ago. Locks its one row; the
 * later of two parallel calls finds it marked.
 */
export function touchSession(
  { companions }: MessageTable,
  { afterMs, hash }: { readonly hash: string; readonly afterMs: number },
): Cold {
  return cold(
    "touchSession",
  )`UPDATE ${companions.session} SET seen_at = ${now} WHERE hash = ${hash} AND seen_at < ${after(-afterMs)}`;
}

/** Locks its one row; reads after the commit find no session. */
export function endSession({ companions }: MessageTable, hash: string): Cold {
  return cold("endSession")`DELETE FROM ${companions.session} WHERE hash = ${hash}`;
}

/** Deletes ended sessions, a few hundred at most. Locks their rows, which are no longer read. */
export function forgetSessions({ companions }: MessageTable): Cold {
  return cold("forgetSessions")`DELETE FROM ${companions.session} WHERE ends_at < ${now}`;
}

/** Aliases: clock (ISO text), total: approximate number of messages, NULL if unknown. */
export function estimate({ rows, words }: MessageTable): Cold {
  return cold("estimate")`SELECT ${iso(words.now)} AS clock, ${rows} AS total`;
}
