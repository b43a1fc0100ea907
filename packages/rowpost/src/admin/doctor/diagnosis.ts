/** What the doctor found. */
export type { Diagnosis, Severity } from "../../message/diagnoses/diagnosis.ts";

/** A transaction, or what stands for one, that keeps old row versions. */
export interface OldTransaction {
  /** `process` or `thread`; on PostgreSQL also `prepared` and `slot`. */
  readonly kind: string;
  /** Its number or name there. */
  readonly name: string;
  /** Empty: not known, as the next two. */
  readonly user: string;
  readonly application: string;
  /** State or doing, in the server's words. */
  readonly doing: string;
  /** Undefined: not to be seen. */
  readonly openForMs: number | undefined;
  /** Transactions whose old row versions stay because of it. */
  readonly held: number;
}
