import type { AuditRecord, AuditResult, BeforeImage, OperationsStore } from "../../../admin/operations.ts";
import { inAscii } from "../../../runtime/ascii.ts";
import { ConfigurationError } from "../../../runtime/errors.ts";
import { auditEntry } from "../by-hand/changes-by-hand.ts";
import { recordChange } from "../by-hand/statements.ts";
import { type Cold, spelled } from "../cold.ts";
import type { StoreParts } from "../relay-store.ts";
import { integer, type Row, text, textOrNull } from "../rows.ts";
import { createToolSlots } from "../tool-slots.ts";
import {
  addSession,
  endSession,
  estimate,
  forgetSessions,
  readAudit,
  readSession,
  touchSession,
} from "./statements.ts";

/** A session in use is written at most this often. */
const SEEN_MS = 60_000;
const MOST_ENTRIES = 1_000;

/** Opens its session at the first use. */
export function createOperationsStore(parts: StoreParts, statementTimeoutMs?: number): OperationsStore {
  const { table } = parts.statements;
  const slots = createToolSlots(parts, statementTimeoutMs);
  const run = (statement: Cold): Promise<readonly Row[]> =>
    slots.use("housekeeping", async (session) => (await session.run(spelled(table.words, statement))).rows);

  return {
    async audit({ beforeId, filter, limit }) {
      if (beforeId !== undefined && !/^\d{1,19}$/.test(beforeId))
        throw new ConfigurationError(`${JSON.stringify(beforeId)} is not an id of the audit`);
      const most = Math.min(MOST_ENTRIES, Math.max(1, Math.trunc(limit)));
      return (await run(readAudit(table, { filter, beforeId, limit: most }))).map(auditRecord);
    },

    async record({ action, author, details, reason, result, via }) {
      const given = details === undefined ? {} : { details: JSON.stringify(details) };
      const entry = auditEntry(action, { author, reason, via }, { changed: 0, result, ...given });
      await run(recordChange(table, entry));
    },

    async openSession(session) {
      await run(forgetSessions(table));
      // JSON that contains a name.
      await run(addSession(table, { ...session, holder: inAscii(session.holder) }));
    },

    async readSession(hash, idleMs) {
      const [row] = await run(readSession(table, { hash, idleMs }));
      if (row === undefined) return undefined;
      await run(touchSession(table, { hash, afterMs: Math.min(SEEN_MS, Math.trunc(idleMs / 2)) }));
      return text(row, "holder");
    },

    async endSession(hash) {
      await run(endSession(table, hash));
    },

    async estimate() {
      const [row] = await run(estimate(table));
      if (row === undefined) throw new Error("the statement estimate returned no row");
      // Hand-numbered ids or statistics may exceed a number.
      const messages = row["total"] === null ? undefined : Math.min(integer(row, "total"), Number.MAX_SAFE_INTEGER);
      return { messages, clock: text(row, "clock") };
    },

    close: () => slots.close(),
  };
}

function auditRecord(row: Row): AuditRecord {
  const json = (alias: string): unknown => JSON.parse(textOrNull(row, alias) ?? "null");
  return {
    id: text(row, "id"),
    at: text(row, "made_at"),
    author: text(row, "author"),
    via: textOrNull(row, "via"),
    action: text(row, "action"),
    reason: text(row, "reason"),
    result: text(row, "result") as AuditResult,
    changed: integer(row, "changed"),
    // JSON.parse would round numbers above 2^53.
    ids: (textOrNull(row, "ids") ?? "").match(/\d+/g) ?? [],
    before: (json("before_image") ?? []) as readonly BeforeImage[],
    details: json("details"),
  };
}
