/** What a MySQL or MariaDB can have that keeps messages from going out, or loses them. */
import type { Diagnosis } from "../../admin/doctor/diagnosis.ts";
import { type DoctorLook, idsRunOut } from "../sql/doctor-statements.ts";
import type { TableLayout } from "../sql/layout.ts";
import { oldTransactionsLook, oldTransactionText } from "../sql/old-transactions.ts";
import { type Row, text, textOrNull } from "../sql/rows.ts";
import { createNames, type MysqlNames } from "./names.ts";
import { endOf, oldTransactions } from "./old-transactions.ts";

/** Each reads variables and catalogs only, or one row of an index; none takes a lock. */
export function doctorLooks(layout: TableLayout): readonly DoctorLook[] {
  const names = createNames(layout);
  return [variables(), table(names), zone(names), ids(names), transactions(), history()];
}

/** A variable, and what is wrong about its value. */
interface Wanted {
  readonly isBad: (value: string) => boolean;
  readonly found: Omit<Diagnosis, "what">;
}

const isOn = (value: string): boolean => /^(?:ON|1)$/i.test(value);
const LOSES: Pick<Diagnosis, "id" | "severity"> = { id: "D204", severity: "warning" };
const READ_ONLY: Omit<Diagnosis, "what" | "mend"> = {
  id: "D201",
  severity: "error",
  why: "relays publish nothing: this is a replica, or an administrator keeps writers out",
};

const VARIABLES: Readonly<Record<string, Wanted>> = {
  super_read_only: { isBad: isOn, found: { ...READ_ONLY, mend: "use the address of the primary" } },
  read_only: { isBad: isOn, found: { ...READ_ONLY, mend: "use the address of the primary" } },
  innodb_flush_log_at_trx_commit: {
    isBad: (value) => value !== "1" && value !== "3",
    found: {
      ...LOSES,
      why: "after a crash of the machine (0: of the server too) the last second of committed orders may be gone with its messages",
      mend: "SET GLOBAL innodb_flush_log_at_trx_commit = 1; and in the server's configuration",
    },
  },
  innodb_doublewrite: {
    isBad: (value) => /^(?:OFF|0)$/i.test(value),
    found: {
      ...LOSES,
      why: "after a crash of the machine a page may be half written, and what is in it lost",
      mend: "set innodb_doublewrite = ON in the server's configuration, unless the file system writes pages whole",
    },
  },
  sql_mode: {
    isBad: (value) => !/STRICT_(?:TRANS|ALL)_TABLES/.test(value),
    found: {
      id: "D205",
      severity: "warning",
      why: "the server cuts keys and texts that are too long; rowpost's own enqueue refuses to work so, other programs' INSERTs do not notice",
      mend: "add STRICT_TRANS_TABLES to sql_mode",
    },
  },
  max_allowed_packet: {
    isBad: (value) => Number(value) < 4_194_304,
    found: {
      id: "D208",
      severity: "note",
      why: "a message and its statement have to fit, so that large bodies cannot be enqueued",
      mend: "SET GLOBAL max_allowed_packet = 67108864; and in the server's configuration",
    },
  },
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
        return wanted?.isBad(value) === true ? [{ ...wanted.found, what: `${name} is ${value || "empty"}` }] : [];
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
  if (engine.toLowerCase() !== "innodb") {
    found.push({
      id: "D202",
      severity: "error",
      what: `${table} is a table of ${engine}`,
      why: "it has no transactions: a message stays when its order is rolled back, and two relays may send it at once",
      mend: `ALTER TABLE ${table} ENGINE = InnoDB;`,
    });
  }
  if (!collation.startsWith("utf8mb4")) {
    found.push({
      id: "D206",
      severity: "warning",
      what: `the character set of ${table} is that of ${collation}`,
      why: "texts with other characters, such as emoji and rare Chinese ones, cannot be stored: their enqueue fails",
      mend: `ALTER TABLE ${table} CONVERT TO CHARACTER SET utf8mb4; (it writes the table anew)`,
    });
  }
  return found;
}

/** With the clock of UTC such columns are refused. */
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
      rows.map((row) => ({
        id: "D107",
        severity: "note",
        what: `${text(row, "columns").replaceAll(",", ", ")} of ${messages} are TIMESTAMP`,
        why: "a program whose session has another time_zone than the server writes delays that are off by hours",
        mend: "make them DATETIME(3), or leave time_zone of every program's sessions as the server has it",
      })),
  };
}

/** What an integer type holds, by its name. */
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
      const mend = `ALTER TABLE ${names.messages} MODIFY \`${column}\` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT; (it writes the table anew)`;
      return idsRunOut(BigInt(highest), unsigned === undefined ? limit : 2n * limit + 1n, mend);
    },
  };
}

function transactions(): DoctorLook {
  return oldTransactionsLook(oldTransactions, (each) => ({
    what: oldTransactionText(each),
    why: "old row versions stay, so that scans become slower with every message; messages that it has locked wait",
    mend: endOf(each),
  }));
}

/** Row versions that nobody has removed yet. */
const LONG_HISTORY = 1_000_000;

function history(): DoctorLook {
  return {
    statement: {
      name: "doctor.history",
      text: `SELECT CAST(i.COUNT AS CHAR) AS versions FROM information_schema.INNODB_METRICS AS i
  WHERE i.NAME = 'trx_rseg_history_len' AND i.COUNT > ${LONG_HISTORY}`,
      params: [],
    },
    judge: (rows) =>
      rows.map((row) => ({
        id: "D302",
        severity: "warning",
        what: `the history of InnoDB has ${text(row, "versions")} transactions that are not purged`,
        why: "every scan walks over old row versions",
        mend: "end the transaction that holds them (D301), or give purge more threads (innodb_purge_threads)",
      })),
  };
}
