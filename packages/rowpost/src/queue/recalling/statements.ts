/** Headers are the only columns of a message that ever change. */
import { by, type Cold, cold, forUpdate, id, quoted } from "../../databases/sql/cold.ts";
import { infoTable } from "../../databases/sql/queue/names.ts";
import { partitionOfId, queueMonth } from "../../message/queue-id.ts";

/** Locks the row until its transaction ends: recalls run one after the other. */
export const lockHeaders = (topic: string, of: string): Cold => cold("lockHeaders")`
SELECT m.headers AS headers FROM ${quoted(infoTable(topic, queueMonth(of)))} AS m${by("PRIMARY")}
WHERE m.partition_no = ${partitionOfId(of)} AND m.message_id = ${id(of)}${forUpdate}`;

/**
 * In the transaction that holds the lock. A consumer reads the headers from before or after. If the
 * process dies before the commit, nothing has changed.
 */
export const writeHeaders = (topic: string, of: string, headers: string): Cold => cold("writeHeaders")`
UPDATE ${quoted(infoTable(topic, queueMonth(of)))} SET headers = ${headers}
WHERE partition_no = ${partitionOfId(of)} AND message_id = ${id(of)}`;
