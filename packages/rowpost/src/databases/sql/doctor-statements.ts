/** What a dialect supplies for the doctor: one look after the other, each with its judgement. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import type { Statement } from "../../transactions/executor.ts";
import type { Row } from "./rows.ts";

/** A statement that reads, and what its rows mean. */
export interface DoctorLook {
  /** Where it fails, nothing is known of it, and that is said; no other look depends on it. */
  readonly statement: Statement;
  readonly judge: (rows: readonly Row[]) => readonly Diagnosis[];
}

/** Ids go up to here: a row's share of it is told from four fifths on. */
export function idsRunOut(highest: bigint, limit: bigint, mend: string): readonly Diagnosis[] {
  const percent = Number((highest * 100n) / limit);
  if (percent < 80) return [];
  return [
    {
      id: "D209",
      severity: percent < 95 ? "warning" : "error",
      what: `${percent} % of the ids of the message table are used up (${highest} of ${limit})`,
      why: "behind the last one every enqueue fails",
      mend,
    },
  ];
}

/** A transaction that is open for so long keeps old row versions, or holds locks. */
export const OLD_TRANSACTION_S = 300;
