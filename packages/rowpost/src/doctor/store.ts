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

/** The port of `examine`. */
export interface DoctorStore {
  /** Looks at settings, tables and what else goes on. Writes nothing. Never rejects. */
  look(): Promise<Examined>;
}
