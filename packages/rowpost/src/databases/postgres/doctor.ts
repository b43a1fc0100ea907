/** What a PostgreSQL can have that keeps messages from going out, or loses them. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import { type DoctorLook, idsRunOut } from "../sql/doctor-statements.ts";
import type { TableLayout } from "../sql/layout.ts";
import { oldTransactionsLook, oldTransactionText } from "../sql/old-transactions.ts";
import { integer, type Row, text, textOrNull } from "../sql/rows.ts";
import { createNames, type Names, textArray } from "./names.ts";
import { endOf, oldTransactions } from "./old-transactions.ts";

/** Each reads catalogs and statistics only, or one row of an index; none takes a lock. */
export function doctorLooks(layout: TableLayout): readonly DoctorLook[] {
  const names = createNames(layout);
  return [settings(), table(names), zone(names), ids(names), holders(), room()];
}

/** What a setting has to be, by the database's and the role's own defaults too. */
const SETTINGS: Readonly<Record<string, { readonly bad: string; readonly found: Omit<Diagnosis, "what"> }>> = {
  fsync: {
    bad: "off",
    found: {
      id: "D204",
      severity: "error",
      why: "after a crash of the machine committed orders and messages may be gone, or the tables broken",
      mend: "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();",
    },
  },
  full_page_writes: {
    bad: "off",
    found: {
      id: "D204",
      severity: "error",
      why: "after a crash of the machine a page may be half written, and what is in it lost",
      mend: "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf();",
    },
  },
  synchronous_commit: {
    bad: "off",
    found: {
      id: "D204",
      severity: "warning",
      why: "after a crash of the server the last transactions may be gone together with their messages, and a message that was sent may be sent again",
      mend: "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();",
    },
  },
  autovacuum: {
    bad: "off",
    found: {
      id: "D210",
      severity: "warning",
      why: "the table and its indexes grow with every message, and scans become slow",
      mend: "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();",
    },
  },
  default_transaction_read_only: {
    bad: "on",
    found: {
      id: "D201",
      severity: "error",
      why: "relays publish nothing until it ends: an administrator keeps writers out, before a switchover as a rule",
      mend: "ask who has set it; relays go on by themselves when it is off",
    },
  },
};

function settings(): DoctorLook {
  return {
    statement: {
      name: "doctor.settings",
      text: `SELECT s.name, s.setting FROM pg_catalog.pg_settings s WHERE s.name = ANY ($1::text[])
UNION ALL SELECT 'recovery', pg_catalog.pg_is_in_recovery()::text
UNION ALL SELECT 'encoding', current_setting('server_encoding')`,
      params: [`{${Object.keys(SETTINGS).join(",")}}`],
    },
    judge: (rows) =>
      rows.flatMap((row): Diagnosis[] => {
        const [name, value] = [text(row, "name"), text(row, "setting")];
        const known = SETTINGS[name];
        if (known?.bad === value) return [{ ...known.found, what: `${name} is ${value}` }];
        if (name === "recovery" && value === "true") return [REPLICA];
        if (name === "encoding" && value !== "UTF8") return [{ ...ENCODING, what: `the encoding is ${value}` }];
        return [];
      }),
  };
}

const REPLICA: Diagnosis = {
  id: "D201",
  severity: "error",
  what: "this server is a replica",
  why: "nothing can be written here, so that no relay works",
  mend: "use the address of the primary",
};

const ENCODING: Omit<Diagnosis, "what"> = {
  id: "D206",
  severity: "warning",
  why: "messages with other characters cannot be stored: their enqueue fails",
  mend: "move to a database with ENCODING 'UTF8'",
};

/** Dead rows beyond this many, and this many times the living ones. */
const DEAD_ROWS = 100_000;
const DEAD_SHARE = 5;

function table(names: Names): DoctorLook {
  return {
    statement: {
      name: "doctor.table",
      text: `SELECT c.relpersistence::text AS persistence, (c.relrowsecurity AND NOT r.rolbypassrls AND NOT r.rolsuper)::int AS policies,
  array_to_string(c.reloptions, ',') AS options, t.n_live_tup::text AS live, t.n_dead_tup::text AS dead,
  age(c.relfrozenxid)::text AS age
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_roles r ON r.rolname = current_user
LEFT JOIN pg_catalog.pg_stat_all_tables t ON t.relid = c.oid
WHERE c.oid = to_regclass($1::text)`,
      params: [names.table],
    },
    judge: ([row]) => (row === undefined ? [] : judgeTable(row, names.table)),
  };
}

function judgeTable(row: Row, table: string): readonly Diagnosis[] {
  const number = (alias: string): number => Number(textOrNull(row, alias) ?? 0);
  const [dead, live] = [number("dead"), number("live")];
  const found: Diagnosis[] = [];
  if (text(row, "persistence") === "u") {
    found.push({
      id: "D202",
      severity: "error",
      what: `${table} is UNLOGGED`,
      why: "after a crash of the server it is empty: all messages that were not sent are lost",
      mend: `ALTER TABLE ${table} SET LOGGED;`,
    });
  }
  if (integer(row, "policies") === 1) {
    found.push({
      id: "D203",
      severity: "error",
      what: `row-level security is on for ${table}, and this role is bound by it`,
      why: "rows that a policy hides would never be sent; relays refuse to work so",
      mend: "ALTER ROLE … BYPASSRLS; for the role of relays and tools",
    });
  }
  if (/autovacuum_enabled=(?:false|off|0)/.test(textOrNull(row, "options") ?? "")) {
    found.push({
      ...{ id: "D210", severity: "warning", what: `autovacuum is off for ${table}` },
      why: "it grows with every message, and scans become slow",
      mend: `ALTER TABLE ${table} RESET (autovacuum_enabled);`,
    });
  }
  if (dead > DEAD_ROWS && dead > DEAD_SHARE * live) {
    found.push({
      ...{ id: "D211", severity: "warning", what: `${table} has ${dead} dead rows beside ${live} living ones` },
      why: "scans walk over them; something keeps VACUUM from removing them, see D301, or it comes too seldom",
      mend: `VACUUM (ANALYZE) ${table};`,
    });
  }
  if (number("age") > 1_000_000_000) {
    found.push({
      ...{ id: "D211", severity: "warning", what: `the oldest row of ${table} is ${number("age")} transactions old` },
      why: "at 2,000,000,000 the server takes no writes any more",
      mend: `VACUUM (FREEZE) ${table};`,
    });
  }
  return found;
}

/** Our own session is in UTC; what others have is its default. */
function zone({ layout, table: name }: Names): DoctorLook {
  return {
    statement: {
      name: "doctor.zone",
      text: `SELECT string_agg(a.attname::text, ', ' ORDER BY a.attnum) AS columns, s.reset_val AS zone
FROM pg_catalog.pg_settings s
JOIN pg_catalog.pg_attribute a ON a.attrelid = to_regclass($1::text) AND a.atttypid = 'timestamp'::regtype AND a.attname::text = ANY ($2::text[])
WHERE s.name = 'TimeZone' AND s.reset_val NOT IN ('UTC', 'Etc/UTC', 'GMT')
GROUP BY s.reset_val`,
      params: [name, textArray(Object.values(layout.columns).filter((column) => column !== undefined))],
    },
    judge: (rows) =>
      rows.map((row) => ({
        id: "D107",
        severity: "warning",
        what: `${text(row, "columns")} of ${name} are timestamp without time zone, and sessions are in ${text(row, "zone")}`,
        why: "rowpost reads and writes UTC there, and what a program writes with now() is off by hours",
        mend: `ALTER TABLE ${name} ALTER COLUMN … TYPE timestamptz USING … AT TIME ZONE 'UTC', or have the programs write UTC`,
      })),
  };
}

function ids(names: Names): DoctorLook {
  const { id } = names.column;
  return {
    statement: {
      name: "doctor.ids",
      text: `SELECT (SELECT max(m.${id}) FROM ${names.table} m)::text AS highest,
  (SELECT a.atttypid::regtype::text FROM pg_catalog.pg_attribute a
   WHERE a.attrelid = to_regclass($1::text) AND a.attname = $2::text) AS type`,
      params: [names.table, names.layout.columns.id],
    },
    judge([row]) {
      const highest = row === undefined ? null : textOrNull(row, "highest");
      if (row === undefined || highest === null) return [];
      const limit = text(row, "type") === "integer" ? 2_147_483_647n : 9_223_372_036_854_775_807n;
      const mend = `ALTER TABLE ${names.table} ALTER COLUMN ${id} TYPE bigint; (it writes the table anew and locks it meanwhile)`;
      return idsRunOut(BigInt(highest), limit, mend);
    },
  };
}

function holders(): DoctorLook {
  return oldTransactionsLook(oldTransactions, (each) => ({
    ...(each.kind === "slot"
      ? {
          what: `the replication slot ${each.name} (${each.doing}) is ${each.held} transactions behind`,
          why: "it keeps old row versions and the write-ahead log, until the disk is full",
        }
      : {
          what: oldTransactionText(each),
          why: "VACUUM removes nothing that it might still see, so that scans become slower with every message",
        }),
    mend: endOf(each),
  }));
}

function room(): DoctorLook {
  return {
    statement: {
      name: "doctor.connections",
      text: `SELECT (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend')::text AS used,
  current_setting('max_connections') AS most`,
      params: [],
    },
    judge([row]) {
      if (row === undefined) return [];
      const [used, most] = [Number(text(row, "used")), Number(text(row, "most"))];
      if (used < 0.9 * most) return [];
      return [
        {
          id: "D306",
          severity: "warning",
          what: `${used} of ${most} connections are in use`,
          why: "a relay that has lost its connection may find none, and each needs four",
          mend: "make the pools of the programs smaller, or raise max_connections",
        },
      ];
    },
  };
}
