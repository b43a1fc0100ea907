/** Conditions of a MySQL or MariaDB server that delay or lose messages. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import { diagnose, type SettingDiagnosis } from "../../message/diagnoses/diagnosis.ts";
import { type DoctorLook, idsRunOut } from "../sql/doctor-statements.ts";
import type { TableLayout } from "../sql/layout.ts";
import { oldTransactionsLook } from "../sql/old-transactions.ts";
import { type Row, text, textOrNull } from "../sql/rows.ts";
import { createNames, type MysqlNames } from "./names.ts";
import { oldTransactions } from "./old-transactions.ts";

/** Each look reads variables, catalogs or one index row. None takes a lock. */
export function doctorLooks(layout: TableLayout): readonly DoctorLook[] {
  const names = createNames(layout);
  return [
    variables(),
    table(names),
    zone(names),
    ids(names),
    oldTransactionsLook(oldTransactions, () => "mysql-transaction"),
    history(),
  ];
}

const isOn = (value: string): boolean => /^(?:ON|1)$/i.test(value);

const VARIABLES: Readonly<
  Record<string, { readonly isBad: (value: string) => boolean; readonly kind: SettingDiagnosis }>
> = {
  super_read_only: { isBad: isOn, kind: "read-only" },
  read_only: { isBad: isOn, kind: "read-only" },
  innodb_flush_log_at_trx_commit: {
    isBad: (value) => value !== "1" && value !== "3",
    kind: "innodb_flush_log_at_trx_commit",
  },
  innodb_doublewrite: { isBad: (value) => /^(?:OFF|0)$/i.test(value), kind: "innodb_doublewrite" },
  sql_mode: { isBad: (value) => !/STRICT_(?:TRANS|ALL)_TABLES/.test(value), kind: "sql_mode" },
  max_allowed_packet: { isBad: (value) => Number(value) < 4_194_304, kind: "max_allowed_packet" },
};

function variables(): DoctorLook {
  return {
    statement: {
      name: "doctor.variables",
      text: `SHOW GLOBAL VARIABLES WHERE Variable_name IN (${Object.keys(VARIABLES)
        .map((name) => `'${name}'`)
        .join(", ")})`,
      params: [],
    },
    judge: (rows) =>
      rows.flatMap((row) => {
        const [name, value] = [text(row, "Variable_name").toLowerCase(), textOrNull(row, "Value") ?? ""];
        const wanted = VARIABLES[name];
        return wanted?.isBad(value) === true ? [diagnose(wanted.kind, { name, value: value || "empty" })] : [];
      }),
  };
}

function table(names: MysqlNames): DoctorLook {
  const { layout } = names;
  return {
    statement: {
      name: "doctor.table",
      text: `SELECT t.ENGINE AS engine, t.TABLE_COLLATION AS collation FROM information_schema.TABLES AS t
  WHERE t.TABLE_SCHEMA = ${layout.schema === undefined ? "DATABASE()" : "?"} AND t.TABLE_NAME = ?`,
      params: layout.schema === undefined ? [layout.table] : [layout.schema, layout.table],
    },
    judge: ([row]) => (row === undefined ? [] : judgeTable(row, names.messages)),
  };
}

function judgeTable(row: Row, table: string): readonly Diagnosis[] {
  const [collation, engine] = [textOrNull(row, "collation") ?? "", textOrNull(row, "engine") ?? ""];
  const found: Diagnosis[] = [];
  if (engine.toLowerCase() !== "innodb") found.push(diagnose("no-transactions", { table, engine }));
  if (!collation.startsWith("utf8mb4")) found.push(diagnose("character-set", { table, collation }));
  return found;
}

/** Such columns are refused with the UTC clock. */
function zone({ layout, messages }: MysqlNames): DoctorLook {
  const columns = Object.values(layout.columns).filter((column) => column !== undefined);
  return {
    statement: {
      name: "doctor.zone",
      text: `SELECT GROUP_CONCAT(c.COLUMN_NAME) AS columns FROM information_schema.COLUMNS AS c
  WHERE c.TABLE_SCHEMA = ${layout.schema === undefined ? "DATABASE()" : "?"} AND c.TABLE_NAME = ?
    AND c.DATA_TYPE = 'timestamp' AND c.COLUMN_NAME IN (${columns.map(() => "?").join(", ")})
  HAVING columns IS NOT NULL`,
      params: [...(layout.schema === undefined ? [] : [layout.schema]), layout.table, ...columns],
    },
    judge: (rows) =>
      rows.map((row) =>
        diagnose("mysql-zone", { columns: text(row, "columns").replaceAll(",", ", "), table: messages }),
      ),
  };
}

const LIMITS: Readonly<Record<string, bigint>> = {
  smallint: 32_767n,
  mediumint: 8_388_607n,
  int: 2_147_483_647n,
  bigint: 9_223_372_036_854_775_807n,
};

function ids(names: MysqlNames): DoctorLook {
  const { layout } = names;
  const id = names.column("id");
  return {
    statement: {
      name: "doctor.ids",
      text: `SELECT (SELECT CAST(MAX(${id}) AS CHAR) FROM ${names.messages} AS m) AS highest, c.COLUMN_TYPE AS type
  FROM information_schema.COLUMNS AS c
  WHERE c.TABLE_SCHEMA = ${layout.schema === undefined ? "DATABASE()" : "?"} AND c.TABLE_NAME = ? AND c.COLUMN_NAME = ?`,
      params: [...(layout.schema === undefined ? [] : [layout.schema]), layout.table, layout.columns.id],
    },
    judge([row]) {
      const highest = row === undefined ? null : textOrNull(row, "highest");
      if (row === undefined || highest === null) return [];
      const [, name = "", unsigned] = /^(\w+)(?:\(\d+\))?( unsigned)?/i.exec(text(row, "type")) ?? [];
      const limit = LIMITS[name.toLowerCase()];
      if (limit === undefined) return [];
      const column = layout.columns.id;
      const wider = `ALTER TABLE ${names.messages} MODIFY \`${column}\` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT`;
      return idsRunOut(BigInt(highest), unsigned === undefined ? limit : 2n * limit + 1n, wider);
    },
  };
}

/** Row versions not purged yet. */
const LONG_HISTORY = 1_000_000;

function history(): DoctorLook {
  return {
    statement: {
      name: "doctor.history",
      text: `SELECT CAST(i.COUNT AS CHAR) AS versions FROM information_schema.INNODB_METRICS AS i
  WHERE i.NAME = 'trx_rseg_history_len' AND i.COUNT > ${LONG_HISTORY}`,
      params: [],
    },
    judge: (rows) => rows.map((row) => diagnose("history", { versions: text(row, "versions") })),
  };
}
