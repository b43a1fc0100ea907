/** Conditions of a PostgreSQL server that delay or lose messages. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import { diagnose, type SettingDiagnosis } from "../../message/diagnoses/diagnosis.ts";
import { type DoctorLook, idsRunOut } from "../sql/doctor-statements.ts";
import type { TableLayout } from "../sql/layout.ts";
import { type OldTransactionKind, oldTransactionsLook } from "../sql/old-transactions.ts";
import { integer, type Row, text, textOrNull } from "../sql/rows.ts";
import { createNames, type Names, textArray } from "./names.ts";
import { oldTransactions } from "./old-transactions.ts";

/** Each look reads only catalogs, statistics or one index row. None takes a lock. */
export function doctorLooks(layout: TableLayout): readonly DoctorLook[] {
  const names = createNames(layout);
  return [settings(), table(names), zone(names), ids(names), holders(), room()];
}

/** Values to report, including defaults of the database and the role. */
const SETTINGS: Readonly<Record<string, { readonly bad: string; readonly kind: SettingDiagnosis }>> = {
  fsync: { bad: "off", kind: "fsync" },
  full_page_writes: { bad: "off", kind: "full_page_writes" },
  synchronous_commit: { bad: "off", kind: "synchronous_commit" },
  autovacuum: { bad: "off", kind: "autovacuum" },
  default_transaction_read_only: { bad: "on", kind: "read-only-for-now" },
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
        if (known?.bad === value) return [diagnose(known.kind, { name, value })];
        if (name === "recovery" && value === "true") return [diagnose("replica", {})];
        if (name === "encoding" && value !== "UTF8") return [diagnose("encoding", { value })];
        return [];
      }),
  };
}

/** Reported above this many dead rows and this multiple of the live ones. */
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
  const [age, dead, live] = [number("age"), number("dead"), number("live")];
  const found: Diagnosis[] = [];
  if (text(row, "persistence") === "u") found.push(diagnose("unlogged", { table }));
  if (integer(row, "policies") === 1) found.push(diagnose("row-security", { table }));
  if (/autovacuum_enabled=(?:false|off|0)/.test(textOrNull(row, "options") ?? "")) {
    found.push(diagnose("no-autovacuum", { table }));
  }
  if (dead > DEAD_ROWS && dead > DEAD_SHARE * live) found.push(diagnose("dead-rows", { table, dead, live }));
  if (age > 1_000_000_000) found.push(diagnose("old-rows", { table, age }));
  return found;
}

/** Our own session uses UTC; other sessions use the default. */
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
      rows.map((row) =>
        diagnose("postgres-zone", { columns: text(row, "columns"), table: name, zone: text(row, "zone") }),
      ),
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
      return idsRunOut(BigInt(highest), limit, `ALTER TABLE ${names.table} ALTER COLUMN ${id} TYPE bigint`);
    },
  };
}

const KINDS: Readonly<Record<string, OldTransactionKind>> = { prepared: "postgres-prepared", slot: "postgres-slot" };

function holders(): DoctorLook {
  return oldTransactionsLook(oldTransactions, ({ kind }) => KINDS[kind] ?? "postgres-process");
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
      return used < 0.9 * most ? [] : [diagnose("connections", { used, most })];
    },
  };
}
