/** The headers of one message, which are all of its row that is ever changed. */
import { by, type Cold, cold, forUpdate, id, quoted } from "../../databases/sql/cold.ts";
import { infoTable } from "../../databases/sql/queue/names.ts";
import { partitionOfId, queueMonth } from "../../message/queue-id.ts";

/** Locks the row until its transaction ends: two recalls come one after the other. */
export const lockHeaders = (topic: string, of: string): Cold => cold("lockHeaders")`
SELECT m.headers AS headers FROM ${quoted(infoTable(topic, queueMonth(of)))} AS m${by("PRIMARY")}
WHERE m.partition_no = ${partitionOfId(of)} AND m.message_id = ${id(of)}${forUpdate}`;

/**
 * In the transaction that has the row locked. A read of a consumer has the headers from before or
 * after. If we die before the commit, nothing has changed.
 */
export const writeHeaders = (topic: string, of: string, headers: string): Cold => cold("writeHeaders")`
UPDATE ${quoted(infoTable(topic, queueMonth(of)))} SET headers = ${headers}
WHERE partition_no = ${partitionOfId(of)} AND message_id = ${id(of)}`;
