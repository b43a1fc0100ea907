/** What the doctor needs of a database. Implemented by databases/sql. */
import type { Diagnosis } from "./diagnosis.ts";

/** What was found in the database itself. */
export interface Examined {
  /** Product and version; undefined: it could not be reached. */
  readonly server: string | undefined;
  /** In any order. */
  readonly found: readonly Diagnosis[];
  /** The message table can be read: it is there, as the layout says, and this user may. */
  readonly isReadable: boolean;
}

/** One way that a plan leads to messages. */
export interface PlanStep {
  /** Undefined: none is used. */
  readonly index: string | undefined;
  /** The whole table, or the whole of this index. */
  readonly readsAll: boolean;
  /** As the server estimates; undefined: it does not. */
  readonly rows: number | undefined;
}

/** How the server would find the messages of a statement. */
export interface StatementPlan {
  /** What the relay does with it, such as `scan`. */
  readonly statement: string;
  /** Steps that read the message table; none where the server sees that nothing can match. */
  readonly steps: readonly PlanStep[];
  /** Why it could not be explained; undefined: it could. */
  readonly problem: string | undefined;
}

/** The port of `examine`, and of `rowpost adopt`. */
export interface DoctorStore {
  /** Explains statements of the relay on this table, also before `migrate`. Runs none of them. */
  plans(): Promise<readonly StatementPlan[]>;
  /** What is wrong with the message table alone, also before `migrate`. */
  tableProblems(): Promise<readonly string[]>;
  /** Looks at settings, tables and what else goes on. Writes nothing. Never rejects. */
  look(): Promise<Examined>;
}
