import { CommitUnknownError, describeError } from "../../runtime/errors.ts";
import type { Executor } from "../../transactions/executor.ts";
import type { Session } from "../database.ts";

/** Tells whether a failed transaction may have committed. Before COMMIT was sent, it cannot. */
export async function inKnownTransaction<T>(
  session: Pick<Session, "transaction">,
  work: (tx: Executor) => Promise<T>,
): Promise<T> {
  let isCommitting = false;
  try {
    return await session.transaction(async (tx) => {
      const result = await work(tx);
      isCommitting = true;
      return result;
    });
  } catch (error) {
    if (!isCommitting) throw error;
    throw new CommitUnknownError(`nobody knows whether the commit took effect (${describeError(error)})`, {
      cause: error,
    });
  }
}
