/** A dialect's looks for the doctor, each with its judgment. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import { diagnose } from "../../message/diagnoses/diagnosis.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { Row } from "./rows.ts";

export interface DoctorLook {
  /** A failure is reported as unknown; no other look depends on it. */
  readonly statement: Statement;
  readonly judge: (rows: readonly Row[]) => readonly Diagnosis[];
}

/** Warns from four fifths of `limit` on that ids run out. `statement` makes room for more. */
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

/** A transaction open this long keeps old row versions or holds locks. */
export const OLD_TRANSACTION_S = 300;
