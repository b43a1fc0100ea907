/** What a dialect supplies for the detector. All of them only read. */
import type { VerifyChunk } from "../../../queue/verifying/store.ts";
import type { Statement } from "../../../transactions/executor.ts";

export interface VerifyStatements {
  /** Aliases: group_id partitionno beginid nextid round. */
  readGroups(topic: string): Statement;
  /** A row for each record of a message, or one. Aliases: id round last_id messages again. */
  readChunk(request: VerifyChunk): Statement;
}
