/** Transactions that keep InnoDB from purging old row versions. */
import type { Statement } from "../../transactions/executor.ts";
import type { OldTransactionsRequest } from "../sql/old-transactions.ts";
import { whole } from "./clock.ts";

/**
 * Reads InnoDB's list of transactions, which needs PROCESS. `held` is the length of the whole
 * history, kept by the oldest. Times are in the machine's zone.
 */
export function oldTransactions({ heldTransactions, olderThanMs }: OldTransactionsRequest): Statement {
  const began = "CONVERT_TZ(t.trx_started, 'SYSTEM', '+00:00')";
  return {
    name: "oldTransactions",
    text: `SELECT 'thread' AS kind, CAST(t.trx_mysql_thread_id AS CHAR) AS name, CONCAT(p.USER, '@', p.HOST) AS account, NULL AS program,
    CONCAT('has locked ', t.trx_rows_locked, ' rows') AS doing,
    CAST(TIMESTAMPDIFF(SECOND, ${began}, UTC_TIMESTAMP()) AS CHAR) AS seconds, CAST(h.versions AS CHAR) AS held
  FROM (SELECT COALESCE(MAX(i.COUNT), 0) AS versions FROM information_schema.INNODB_METRICS AS i WHERE i.NAME = 'trx_rseg_history_len') AS h
  JOIN information_schema.INNODB_TRX AS t
  LEFT JOIN information_schema.PROCESSLIST AS p ON p.ID = t.trx_mysql_thread_id
  WHERE h.versions >= ${whole(heldTransactions)} AND ${began} <= UTC_TIMESTAMP() - INTERVAL ${whole(olderThanMs)} * 1000 MICROSECOND
  ORDER BY t.trx_started LIMIT 5`,
    params: [],
  };
}
