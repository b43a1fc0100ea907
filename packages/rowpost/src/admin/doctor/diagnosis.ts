/** What the doctor found: what is wrong, what comes of it, and what mends it. */

/**
 * `error`: messages are not sent, or may be lost. `warning`: they may be late, or it will be an
 * error one day. `note`: good to know; nothing has to be done.
 */
export type Severity = "error" | "warning" | "note";

/** One thing that was found. */
export interface Diagnosis {
  /**
   * Stable: D1.. is about reaching the tables, D2.. about settings, D3.. about what else goes on in
   * the database, D4.. about messages and relays, D5.. about the broker and this process.
   */
  readonly id: string;
  /** How urgent it is. */
  readonly severity: Severity;
  /** What was seen, with its figures. */
  readonly what: string;
  /** What comes of it. */
  readonly why: string;
  /** A statement, a command, or a sentence that says what to do. */
  readonly mend: string;
}

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
