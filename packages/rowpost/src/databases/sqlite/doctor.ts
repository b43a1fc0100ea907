/**
 * Conditions of a SQLite file that delay messages. The journal is WAL, since other files are not
 * opened.
 */
import { type DoctorLook, idsRunOut } from "../sql/doctor-statements.ts";
import type { TableLayout } from "../sql/layout.ts";
import { textOrNull } from "../sql/rows.ts";
import { createNames, type Names } from "./names.ts";

/** Reads one index row. */
export function doctorLooks(layout: TableLayout): readonly DoctorLook[] {
  const names = createNames(layout);
  return [ids(names)];
}

function ids(names: Names): DoctorLook {
  return {
    statement: {
      name: "doctor.ids",
      text: `SELECT CAST(max(m.${names.column.id}) AS TEXT) AS highest FROM ${names.table} AS m`,
      params: [],
    },
    judge([row]) {
      const highest = row === undefined ? null : textOrNull(row, "highest");
      return highest === null ? [] : idsRunOut(BigInt(highest), 9_223_372_036_854_775_807n);
    },
  };
}
