/** The horizon that keeps VACUUM from removing old rows, and its holders. */
import type { Statement } from "../../transactions/executor.ts";
import type { OldTransactionsRequest } from "../sql/old-transactions.ts";

/** Transactions behind that count as old if the age is unknown. */
const HELD_UNSEEN = 1_000_000;

/**
 * Reads statistics in memory without a lock. Transactions without a snapshot or writes hold nothing
 * back. Without pg_read_all_stats other roles' age and state are NULL, as are a standby's; those
 * are judged by how many transactions they are behind.
 */
export function oldTransactions({ heldTransactions, olderThanMs }: OldTransactionsRequest): Statement {
  return {
    name: "oldTransactions",
    text: `SELECT kind, name, account, program, doing, seconds, held::text AS held
FROM (
  SELECT 'process' AS kind, a.pid::text AS name, a.usename::text AS account, a.application_name AS program, a.state AS doing,
    EXTRACT(epoch FROM clock_timestamp() - a.xact_start)::bigint::text AS seconds,
    GREATEST(age(a.backend_xmin), age(a.backend_xid)) AS held, a.xact_start AS began
  FROM pg_catalog.pg_stat_activity a
  WHERE (a.datname = current_database() OR a.datname IS NULL) AND a.usename IS NOT NULL AND a.pid <> pg_backend_pid()
  UNION ALL
  SELECT 'prepared', p.gid, p.owner::text, '', 'prepared', EXTRACT(epoch FROM clock_timestamp() - p.prepared)::bigint::text,
    age(p.transaction), p.prepared
  FROM pg_catalog.pg_prepared_xacts p
  WHERE p.database = current_database()
  UNION ALL
  SELECT 'slot', s.slot_name::text, NULL, s.plugin::text, CASE WHEN s.active THEN 'active' ELSE 'nobody reads it' END, NULL,
    GREATEST(age(s.xmin), age(s.catalog_xmin)), NULL
  FROM pg_catalog.pg_replication_slots s
) holder
WHERE held >= CASE WHEN began IS NULL THEN GREATEST($2::bigint, ${HELD_UNSEEN}) ELSE $2::bigint END
  AND (began IS NULL OR began < clock_timestamp() - $1::bigint * interval '1 millisecond')
ORDER BY holder.held DESC, name LIMIT 5`,
    params: [olderThanMs, heldTransactions],
  };
}
