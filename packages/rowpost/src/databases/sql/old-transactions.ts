/** Transactions that keep old row versions, for the doctor and the relay. */
import type { OldTransaction } from "../../admin/doctor/diagnosis.ts";
import { type DiagnosisFacts, diagnose } from "../../message/diagnoses/diagnosis.ts";
import type { Statement } from "../../transactions/executor.ts";
import { type DoctorLook, OLD_TRANSACTION_S } from "./doctor-statements.ts";
import { integer, type Row, text, textOrNull } from "./rows.ts";

/** Only those above this age that keep at least this many transactions' versions. */
export interface OldTransactionsRequest {
  readonly olderThanMs: number;
  readonly heldTransactions: number;
}

/**
 * Aliases: kind (process, prepared, slot), name, account, program, doing, seconds (NULL: hidden
 * from this user), held.
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

/** The doctor's look; `kindOf` names the kind of a transaction. */
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

/** "?" stands for values hidden from this user. */
function factsOf({ application, doing, held, kind, name, openForMs, user }: OldTransaction): Facts {
  const transaction = [`${kind} ${name}`, application, doing].filter((word) => word !== "").join(", ");
  const seconds = openForMs === undefined ? "?" : openForMs / 1_000;
  return { user: user === "" ? "?" : user, transaction, seconds, name, doing, held };
}

type Facts = DiagnosisFacts<"mysql-transaction"> & DiagnosisFacts<"postgres-slot">;
