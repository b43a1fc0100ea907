/** The mark of a month that is dropped, in dialects whose parameters are question marks. */
import type { RetentionStatements } from "./retention-statements.ts";

type MarkStatements = Pick<
  RetentionStatements,
  "insertMark" | "takeMark" | "touchMark" | "releaseMark" | "finishMark" | "removeMark"
>;

/** The month of a topic; parameters: topic, month. */
export const MARK = "topic_id = ? AND message_date = ?";

/** `now`: an expression; `longAgo`: a literal that no fresh mark has. */
export function markStatements({ now, longAgo }: { readonly now: string; readonly longAgo: string }): MarkStatements {
  return {
    /** From its commit on nobody rewinds to the month. If we die then, the next call goes on. */
    insertMark: ({ topic, month, owner, author, reason }) => ({
      name: "insertMark",
      text: `INSERT INTO message_dropped_month (topic_id, message_date, owner, author, reason, gmt_create, gmt_modified) VALUES (?, ?, ?, ?, ?, ${now}, ${now})`,
      params: [topic, month, owner, author, reason],
    }),

    /** Of a row that this transaction has locked. */
    takeMark: ({ topic, month, owner }) => ({
      name: "takeMark",
      text: `UPDATE message_dropped_month SET owner = ?, gmt_modified = ${now} WHERE ${MARK}`,
      params: [owner, topic, month],
    }),

    /** Locks the mark. No row when another call has taken it over; so do the next ones. */
    touchMark: ({ topic, month, owner }, counts, archive) => ({
      name: "touchMark",
      text: `UPDATE message_dropped_month SET messages = COALESCE(?, messages), records = COALESCE(?, records), archive = COALESCE(?, archive), gmt_modified = ${now}
  WHERE ${MARK} AND owner = ?`,
      params: [counts?.messages ?? null, counts?.records ?? null, archive ?? null, topic, month, owner],
    }),

    /** As above. */
    releaseMark: ({ topic, month, owner }) => ({
      name: "releaseMark",
      text: `UPDATE message_dropped_month SET gmt_modified = ${longAgo} WHERE ${MARK} AND owner = ?`,
      params: [topic, month, owner],
    }),

    /** As above; behind the DROP. */
    finishMark: ({ topic, month, owner }, redeliveries) => ({
      name: "finishMark",
      text: `UPDATE message_dropped_month SET owner = NULL, redeliveries = redeliveries + ?, gmt_modified = ${now} WHERE ${MARK} AND owner = ?`,
      params: [redeliveries, topic, month, owner],
    }),

    /** As above; before any DROP. */
    removeMark: ({ topic, month, owner }) => ({
      name: "removeMark",
      text: `DELETE FROM message_dropped_month WHERE ${MARK} AND owner = ?`,
      params: [topic, month, owner],
    }),
  };
}
