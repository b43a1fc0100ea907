/** What people did by hand is written down beside the change, and found again by the message. */
import type { ChangeByHand, OperatorAction } from "../../outbox/message-admin.ts";
import type { InsightParts } from "./insight-statements.ts";
import { text, textOrEmpty } from "./rows.ts";
import type { AuditEntry } from "./statements.ts";

/**
 * Entries that are looked through for a message: each is of up to 1,000 messages between two ids,
 * of which it may be one.
 */
const LOOKED_AT = 100;

/** What is written down of a change. */
export function auditEntry(
  what: string,
  { author, reason }: OperatorAction,
  more: Pick<AuditEntry, "changed"> & Partial<AuditEntry>,
): AuditEntry {
  return { action: what, author, reason, ids: undefined, details: undefined, ...more };
}

/** The changes of this message, the newest first. */
export async function changesOf(
  { read, statements }: Omit<InsightParts, "layout">,
  id: string,
): Promise<ChangeByHand[]> {
  const rows = await read(statements.admin.readChanges({ id, limit: LOOKED_AT }));
  const isOne = new RegExp(`[[,]${id}[\\],]`);
  return rows
    .filter((row) => isOne.test(textOrEmpty(row, "ids")))
    .map((row) => ({
      at: text(row, "made_at"),
      author: text(row, "author"),
      action: text(row, "action"),
      reason: text(row, "reason"),
    }));
}
