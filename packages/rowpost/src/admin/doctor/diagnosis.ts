/** Findings of the doctor. */
export type { Diagnosis, Severity } from "../../message/diagnoses/diagnosis.ts";

/** A transaction, or its equivalent, that keeps old row versions. */
export interface OldTransaction {
  /** `process` or `thread`; on PostgreSQL also `prepared` and `slot`. */
  readonly kind: string;
  /** Its number or name on the server. */
  readonly name: string;
  /** Empty when unknown, like the next two. */
  readonly user: string;
  readonly application: string;
  /** State or activity, as the server reports it. */
  readonly doing: string;
  /** Undefined: not visible. */
  readonly openForMs: number | undefined;
  /** Transactions whose old row versions it retains. */
  readonly held: number;
}
