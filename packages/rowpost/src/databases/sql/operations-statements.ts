/** What a dialect supplies for the console: sessions, the audit, and the size of the table. */
import type { AuditFilter, NewSession } from "../../outbox/operations.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { AlertStatements } from "./alerts-statements.ts";
import type { BulkStatements } from "./bulk-statements.ts";

export interface OperationsStatements extends BulkStatements, AlertStatements {
  /**
   * Aliases: id made_at (ISO text) author via action reason result changed ids before_image
   * details. The newest first. Walks the primary key.
   */
  readAudit(request: {
    readonly filter: AuditFilter;
    readonly beforeId: string | undefined;
    readonly limit: number;
  }): Statement;
  addSession(session: NewSession): Statement;
  /** Alias: holder. No row: there is none, or it is over. */
  readSession(request: { readonly hash: string; readonly idleMs: number }): Statement;
  /** Says that it was seen now; changes nothing when that was said less than `afterMs` ago. */
  touchSession(request: { readonly hash: string; readonly afterMs: number }): Statement;
  endSession(hash: string): Statement;
  /** Deletes the sessions whose end has come. */
  forgetSessions(): Statement;
  /** Aliases: clock (ISO text), total: about so many messages, NULL where nobody knows. */
  estimate(): Statement;
}

/** Conditions of {@link OperationsStatements.readAudit} with their values. */
export function auditConditions(
  { action, author, result }: AuditFilter,
  beforeId: string | undefined,
  place: (number: number) => string,
  /** Compares by bytes, where the column's collation does not. */
  collate = "",
): { readonly where: string; readonly params: readonly string[] } {
  const given = Object.entries({ author, action, result }).filter(([, value]) => value !== undefined);
  const conditions = given.map(([column], index) => `a.${column} = ${place(index + 1)}${collate}`);
  // A checked decimal number stands in the text.
  if (beforeId !== undefined) conditions.push(`a.id < ${BigInt(beforeId)}`);
  return { where: conditions.map((one) => ` AND ${one}`).join(""), params: given.map(([, value]) => String(value)) };
}
