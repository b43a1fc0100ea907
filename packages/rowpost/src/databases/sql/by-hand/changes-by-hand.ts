/** Audit entries of changes by hand, written with the change and found by message. */

import type { ChangeByHand, OperatorAction } from "../../../admin/message-admin.ts";
import type { BeforeImage } from "../../../admin/operations.ts";
import { inAscii } from "../../../runtime/ascii.ts";
import { ConfigurationError } from "../../../runtime/errors.ts";
import type { MessageTable } from "../cold-table.ts";
import type { Read } from "../insight/requests.ts";
import { readChanges } from "../insight/statements.ts";
import type { TableLayout } from "../layout.ts";
import { decodeState, type Row, text, textOrEmpty, textOrNull, wholeText } from "../rows.ts";
import type { AuditEntry } from "./statements.ts";

/** Entries searched for a message. Each covers up to 1,000 messages between two ids. */
const LOOKED_AT = 100;
/** Length of a reason in the before-image of up to 1,000 messages. */
const REASON_LENGTH = 200;

export function auditEntry(
  what: string,
  { author, reason, via }: OperatorAction,
  more: Pick<AuditEntry, "changed"> & Partial<AuditEntry>,
): AuditEntry {
  const { beforeImage, details, ...others } = more;
  // Both are JSON with foreign text.
  const ascii = (json: string | undefined): string | undefined => json && inAscii(json);
  const texts = { details: ascii(details), beforeImage: ascii(beforeImage) };
  return { action: what, author, reason, via, result: "done", ids: undefined, ...texts, ...others };
}

/** Rows under the lock, before the change. */
export function beforeImages(layout: TableLayout, rows: readonly Row[], ids: readonly string[]): string {
  const changed = new Set(ids);
  const images: BeforeImage[] = rows
    .filter((row) => changed.has(text(row, "id")))
    .map((row) => ({
      id: text(row, "id"),
      state: decodeState(layout, row["state"]),
      lockVersion: layout.columns.lockVersion === undefined ? undefined : wholeText(row, "lock_version"),
      failReason: textOrNull(row, "fail_reason")?.slice(0, REASON_LENGTH) ?? null,
    }));
  return JSON.stringify(images);
}

export async function changesOf(
  { read, table }: { readonly table: MessageTable; readonly read: Read },
  id: string,
): Promise<ChangeByHand[]> {
  const rows = await read(readChanges(table, { id, limit: LOOKED_AT }));
  const isOne = new RegExp(`[[,]${id}[\\],]`);
  return rows
    .filter((row) => isOne.test(textOrEmpty(row, "ids")))
    .map((row) => ({
      at: text(row, "made_at"),
      author: text(row, "author"),
      action: text(row, "action"),
      reason: text(row, "reason"),
      ...copyOf(row),
    }));
}

function copyOf(row: Row): Pick<ChangeByHand, "copyId" | "copyOf"> {
  const action = text(row, "action");
  if (action !== "copy" && action !== "copied") return {};
  const { copyId, copyOf } = JSON.parse(textOrNull(row, "details") ?? "{}") as Pick<ChangeByHand, "copyId" | "copyOf">;
  return action === "copy" ? { copyId } : { copyOf };
}

/** Throws `ConfigurationError` for a missing author or reason. */
export function checkAction(action: OperatorAction): void {
  if (action.author.trim() === "" || action.reason.trim() === "")
    throw new ConfigurationError("say who does it and why: author and reason are empty");
}
