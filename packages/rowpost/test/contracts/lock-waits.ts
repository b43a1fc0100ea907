/**
 * Who waits for a lock: so that a case can go on when an interleaving has come about, instead of
 * guessing how long that takes.
 */
import type { DialectName } from "../../src/databases/database.ts";
import type { RunSql } from "./test-dialect.ts";

/** Number of connections to this database that wait for a lock now. */
export type CountWaiting = () => Promise<number>;

/**
 * Counts by SQL on a connection that does not wait itself. Undefined: the engine has no locks that
 * a statement waits for.
 */
export function createLockWaitCounter(dialect: DialectName, sql: RunSql): CountWaiting | undefined {
  switch (dialect) {
    case "mysql":
      return innodbCounter(sql);
    case "postgres":
      return async () => {
        const { rows } = await sql(
          "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        );
        return Number(rows[0]?.["n"]);
      };
    case "sqlite":
      return undefined;
  }
}

/** A statement of these suites takes 2 ms; one that has been running for this long waits. */
const LONG_MS = 40;

/**
 * From InnoDB's monitor and, because MySQL leaves transactions out of it that have not written yet,
 * from statements that do not end. information_schema.INNODB_TRX would say it, but shows what it
 * was until nobody at all has asked for 100 ms, and performance_schema is off on many servers. A
 * statement that is slow instead of waiting makes a case less sharp, and never wrong.
 */
function innodbCounter(sql: RunSql): CountWaiting {
  let runningSince = new Map<string, number>();
  return async () => {
    const self = (await sql("SELECT CONNECTION_ID() AS id, DATABASE() AS db")).rows[0];
    // information_schema.PROCESSLIST of MySQL 9 fails (3854) while any session runs a statement
    // with a character outside of utf8mb3.
    const sessions = (await sql("SHOW FULL PROCESSLIST")).rows;
    const others = sessions.filter(({ Id, db }) => db === self?.["db"] && String(Id) !== String(self?.["id"]));
    const monitor = await sql("SHOW ENGINE INNODB STATUS");
    const now = performance.now();
    const seen = new Map<string, number>();
    const waiting = waitingThreads(String(monitor.rows[0]?.["Status"]));
    let count = 0;
    for (const { Id: id, Info: info } of others) {
      const statement = `${String(id)} ${String(info)}`;
      const since = info === null ? now : (runningSince.get(statement) ?? now);
      if (info !== null) seen.set(statement, since);
      if (waiting.has(String(id)) || now - since >= LONG_MS) count += 1;
    }
    runningSince = seen;
    return count;
  };
}

function waitingThreads(status: string): ReadonlySet<string> {
  const [, transactions = ""] = status.split("LIST OF TRANSACTIONS FOR EACH SESSION:");
  const threads = transactions.split("---TRANSACTION ").map((transaction) => {
    const thread = /^(?:MySQL|MariaDB) thread id (\d+),/m.exec(transaction)?.[1];
    return /^LOCK WAIT /m.test(transaction) ? thread : undefined;
  });
  return new Set(threads.filter((thread) => thread !== undefined));
}
