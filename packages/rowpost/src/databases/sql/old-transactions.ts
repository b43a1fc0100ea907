/** Transactions that keep old row versions, as the doctor and the relay ask for them. */
import type { OldTransaction } from "../../admin/doctor/diagnosis.ts";
import { type DiagnosisFacts, diagnose } from "../../message/diagnoses/diagnosis.ts";
import type { Statement } from "../../transactions/executor.ts";
import { type DoctorLook, OLD_TRANSACTION_S } from "./doctor-statements.ts";
import { integer, type Row, text, textOrNull } from "./rows.ts";

/** Only those that are older, and keep the versions of at least so many transactions. */
export interface OldTransactionsRequest {
  readonly olderThanMs: number;
  readonly heldTransactions: number;
}

/**
 * A row of the statement. Aliases: kind (process, prepared, slot), name, account, program, doing,
 * seconds (NULL: this user may not see it), held.
 */
export function oldTransaction(row: Row): OldTransaction {
  const seconds = textOrNull(row, "seconds");
  return {
    kind: text(row, "kind"),
    name: text(row, "name"),
    user: textOrNull(row, "account") ?? "",
    application: textOrNull(row, "program") ?? "",
    doing: textOrNull(row, "doing") ?? "",
    openForMs: seconds === null ? undefined : Number(seconds) * 1_000,
    held: integer(row, "held"),
  };
}

/** The doctor's look at them; `kindOf` says what one of them is. */
export function oldTransactionsLook(
  statement: (request: OldTransactionsRequest) => Statement,
  kindOf: (transaction: OldTransaction) => OldTransactionKind,
): DoctorLook {
  return {
    statement: {
      ...statement({ olderThanMs: OLD_TRANSACTION_S * 1_000, heldTransactions: 0 }),
      name: "doctor.transactions",
    },
    judge: (rows) => rows.map(oldTransaction).map((each) => diagnose(kindOf(each), factsOf(each))),
  };
}

export type OldTransactionKind = "mysql-transaction" | "postgres-process" | "postgres-prepared" | "postgres-slot";

/** What this user may not see is "?". */
function factsOf({ application, doing, held, kind, name, openForMs, user }: OldTransaction): Facts {
  const transaction = [`${kind} ${name}`, application, doing].filter((word) => word !== "").join(", ");
  const seconds = openForMs === undefined ? "?" : openForMs / 1_000;
  return { user: user === "" ? "?" : user, transaction, seconds, name, doing, held };
}

type Facts = DiagnosisFacts<"mysql-transaction"> & DiagnosisFacts<"postgres-slot">;
