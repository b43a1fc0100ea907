import { openMysql } from "./mysql.ts";
import { openPostgres } from "./postgres.ts";
import type { BenchDatabase } from "./server.ts";
import { openSqlite } from "./sqlite.ts";

/** Creates an empty database; `suffix` distinguishes several of one process. */
export type OpenDatabase = (suffix: string) => Promise<BenchDatabase>;

/**
 * `mysql://`, `mariadb://`, `postgres://`, `postgresql://` or `sqlite:FILE`; undefined for anything
 * else.
 */
export function openerOf(text: string): OpenDatabase | undefined {
  if (text.startsWith("sqlite:")) return (suffix) => openSqlite(text, suffix);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  switch (url?.protocol) {
    case "mysql:":
    case "mariadb:":
      return (suffix) => openMysql(url, suffix);
    case "postgres:":
    case "postgresql:":
      return (suffix) => openPostgres(url, suffix);
    default:
      return undefined;
  }
}
