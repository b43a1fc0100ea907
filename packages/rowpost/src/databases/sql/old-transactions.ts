/** Transactions that keep old row versions, as the doctor and the relay ask for them. */
import type { Diagnosis, OldTransaction } from "../../admin/doctor/diagnosis.ts";
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

/** What ends it. */
export type EndOf = (transaction: OldTransaction) => string;

/** The doctor's look at them; `judge` says what one of them does, and what ends it. */
export function oldTransactionsLook(
  statement: (request: OldTransactionsRequest) => Statement,
  judge: (transaction: OldTransaction) => Pick<Diagnosis, "what" | "why" | "mend">,
): DoctorLook {
  return {
    statement: {
      ...statement({ olderThanMs: OLD_TRANSACTION_S * 1_000, heldTransactions: 0 }),
      name: "doctor.transactions",
    },
    judge: (rows) =>
      rows.map(oldTransaction).map((each) => ({ id: "D301", severity: "warning" as const, ...judge(each) })),
  };
}

/** In words, for the doctor. */
export function oldTransactionText({ application, doing, kind, name, openForMs, user }: OldTransaction): string {
  const more = [application, doing].filter((word) => word !== "").map((word) => `, ${word}`);
  const by = user === "" ? "" : ` of ${user}`;
  const age = openForMs === undefined ? "for a time that this user may not see" : `for ${openForMs / 1_000} s`;
  return `a transaction${by} (${kind} ${name}${more.join("")}) is open ${age}`;
}
