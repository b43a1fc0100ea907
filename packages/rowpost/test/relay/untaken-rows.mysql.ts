/** How tables of the MySQL family refuse a row. */
import type { UntakenRowsOptions } from "./untaken-rows.cases.ts";

const refusal = (name: string, when: string, table: string): string =>
  `CREATE TRIGGER ${name} BEFORE ${when} ON ${table} FOR EACH ROW
  IF NEW.message_key = 'odd' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not the odd one'; END IF`;

export const MYSQL_UNTAKEN: UntakenRowsOptions = {
  refuse: [refusal("no_odd", "UPDATE", "local_message")],
  allow: "DROP TRIGGER no_odd",
  refuseArchive: refusal("no_odd_there", "INSERT", "local_message_archive"),
};
