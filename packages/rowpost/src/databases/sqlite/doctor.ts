/**
 * What a SQLite file can have that keeps messages from going out. Its journal is WAL, or it would
 * not have been opened.
 */
import { type DoctorLook, idsRunOut } from "../sql/doctor-statements.ts";
import type { TableLayout } from "../sql/layout.ts";
import { textOrNull } from "../sql/rows.ts";
import { createNames, type Names } from "./names.ts";

/** It reads one row of an index. */
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
