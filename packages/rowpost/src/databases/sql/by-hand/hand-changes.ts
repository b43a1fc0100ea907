/**
 * Changes by hand in the caller's transaction: locks the rows, changes those that are as they were
 * seen, and records author and reason.
 */

import type { ChangeConflict, OperatorAction, SeenMessage } from "../../../admin/message-admin.ts";
import { allowedFrom, type MessageState } from "../../../message/states.ts";
import type { Executor, Statement } from "../../../transactions/executor.ts";
import { spelled } from "../cold.ts";
import { moveRows } from "../housekeeping-store.ts";
import type { StoreParts } from "../relay-store.ts";
import { decodeState, type Row, text, wholeText } from "../rows.ts";
import { auditEntry, beforeImages } from "./changes-by-hand.ts";
import { lockRows, recordChange } from "./statements.ts";

export interface HandChange {
  /** Name in the audit. */
  readonly name: string;
  readonly allowed: readonly MessageState[];
  readonly write: (tx: Executor, ids: readonly string[], action: OperatorAction) => Promise<number>;
}

/** Outcome per row. Rows counted in none of the three needed no change. */
export interface HandChanged {
  readonly changed: number;
  readonly conflicts: readonly ChangeConflict[];
  readonly gone: number;
}

export interface HandChanges {
  retry(how: { readonly resend: boolean; readonly now: boolean }): HandChange;
  suspend(untilMs: number | null): HandChange;
  resume(): HandChange;
  confirm(): HandChange;
  remove(mode: "archive" | "delete", withFailed: boolean): HandChange;
  /** `details`: JSON for the audit; a function is called after the change. */
  apply(
    tx: Executor,
    change: HandChange,
    request: {
      readonly rows: readonly SeenMessage[];
      readonly action: OperatorAction;
      readonly details?: string | (() => string);
    },
  ): Promise<HandChanged>;
}

export function createHandChanges({ layout, statements }: Pick<StoreParts, "layout" | "statements">): HandChanges {
  const { admin, table } = statements;
  type Made = (ids: readonly string[], action: OperatorAction) => Statement;
  const writing =
    (statement: Made): HandChange["write"] =>
    async (tx, ids, action) =>
      (await tx.run(statement(ids, action))).affected;

  function asFound(row: Row): ChangeConflict {
    return {
      id: text(row, "id"),
      state: decodeState(layout, row["state"]),
      lockVersion: layout.columns.lockVersion === undefined ? undefined : wholeText(row, "lock_version"),
    };
  }

  return {
    retry: ({ now, resend }) => ({
      name: "retry",
      allowed: [
        ...allowedFrom("operatorRetry").filter((state) => resend || state !== "sent"),
        ...(now ? (["pending"] as const) : []),
      ],
      async write(tx, ids, action) {
        // Waiting rows first, because the second statement makes the others pending.
        const brought = now ? (await tx.run(admin.bringForward({ ids, action }))).affected : 0;
        return brought + (await tx.run(admin.operatorRetry({ ids, action }))).affected;
      },
    }),

    suspend: (untilMs) => ({
      name: "suspend",
      allowed: allowedFrom("suspend"),
      write: writing((ids, action) => admin.suspendRows({ ids, action, untilMs })),
    }),

    resume: () => ({
      name: "resume",
      allowed: allowedFrom("resume"),
      write: writing((ids, action) => admin.resumeRows({ ids, action })),
    }),

    confirm: () => ({
      name: "confirm",
      allowed: allowedFrom("confirm"),
      write: writing((ids) => statements.confirm.confirmRows(ids)),
    }),

    remove: (mode, withFailed) => ({
      name: mode,
      allowed: withFailed ? ["sent", "consumed", "failed"] : ["sent", "consumed"],
      async write(tx, ids) {
        await moveRows(tx, statements.housekeeping, mode, ids);
        return ids.length;
      },
    }),

    async apply(tx, { allowed, name, write }, { action, details, rows }) {
      const locked = (
        await tx.run(
          spelled(
            table.words,
            lockRows(
              table,
              rows.map(({ id }) => id),
            ),
          ),
        )
      ).rows;
      const { conflicts, free } = sort(locked.map(asFound), rows, allowed);
      const changed = free.length === 0 ? 0 : await write(tx, free, action);
      if (changed > 0) {
        const beforeImage = beforeImages(layout, locked, free);
        const told = typeof details === "function" ? details() : details;
        const entry = auditEntry(name, action, { changed, ids: free, beforeImage, details: told });
        await tx.run(spelled(table.words, recordChange(table, entry)));
      }
      return { changed, conflicts, gone: rows.length - locked.length };
    },
  };
}

/** Splits locked rows into changeable ones and the rest. */
function sort(
  locked: readonly ChangeConflict[],
  seen: readonly SeenMessage[],
  allowed: readonly MessageState[],
): { readonly free: readonly string[]; readonly conflicts: readonly ChangeConflict[] } {
  const versions = new Map(seen.map(({ id, lockVersion }) => [id, lockVersion]));
  const isFree = ({ id, lockVersion, state }: ChangeConflict): boolean =>
    state !== "unknown" && allowed.includes(state) && (lockVersion === undefined || lockVersion === versions.get(id));
  return {
    free: locked.filter(isFree).map(({ id }) => id),
    conflicts: locked.filter((row) => !isFree(row)),
  };
}
