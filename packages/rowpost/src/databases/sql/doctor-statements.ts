/** What a dialect supplies for the doctor: one look after the other, each with its judgement. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import { diagnose } from "../../message/diagnoses/diagnosis.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { Row } from "./rows.ts";

/** A statement that reads, and what its rows mean. */
export interface DoctorLook {
  /** Where it fails, nothing is known of it, and that is said; no other look depends on it. */
  readonly statement: Statement;
  readonly judge: (rows: readonly Row[]) => readonly Diagnosis[];
}

/**
 * Ids go up to `limit`: that they run out is told from four fifths on. `statement` makes room for
 * more.
 */
export function idsRunOut(highest: bigint, limit: bigint, statement?: string): readonly Diagnosis[] {
  const percent = Number((highest * 100n) / limit);
  if (percent < 80) return [];
  const facts = { percent, highest, limit };
  const severity = percent < 95 ? "warning" : "error";
  return [
    statement === undefined
      ? diagnose("file-ids-run-out", facts, severity)
      : diagnose("ids-run-out", { ...facts, statement }, severity),
  ];
}

/** A transaction that is open for so long keeps old row versions, or holds locks. */
export const OLD_TRANSACTION_S = 300;
