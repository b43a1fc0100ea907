/** Database port of the doctor. Implemented by databases/sql. */
import type { Diagnosis } from "./diagnosis.ts";

/** Findings in the database itself. */
export interface Examined {
  /** Product and version; undefined: unreachable. */
  readonly server: string | undefined;
  /** In any order. */
  readonly found: readonly Diagnosis[];
  /** The message table exists, matches the layout, and this user may read it. */
  readonly isReadable: boolean;
}

/** One access path of a plan to messages. */
export interface PlanStep {
  /** Undefined: none is used. */
  readonly index: string | undefined;
  /** The whole table, or the whole of this index. */
  readonly readsAll: boolean;
  /** The server's estimate, if any. */
  readonly rows: number | undefined;
}

/** The server's plan for a statement. */
export interface StatementPlan {
  /** Use in the relay, such as `scan`. */
  readonly statement: string;
  /** Steps that read the message table; none when the server sees that nothing can match. */
  readonly steps: readonly PlanStep[];
  /** Why it could not be explained, if so. */
  readonly problem: string | undefined;
}

/** Port of `examine` and of `rowpost adopt`. */
export interface DoctorStore {
  /** Explains the relay's statements without running them, also before `migrate`. */
  plans(): Promise<readonly StatementPlan[]>;
  /** Problems of the message table alone, also before `migrate`. */
  tableProblems(): Promise<readonly string[]>;
  /** Writes nothing. Never rejects. */
  look(): Promise<Examined>;
}
