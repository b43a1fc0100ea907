/** How a table of the MySQL family refuses rows. */
import type { RefusedRowsOptions } from "./refused-rows.cases.ts";

const columns = (charset: string): string =>
  `ALTER TABLE local_message MODIFY fail_reason VARCHAR(1024) CHARACTER SET ${charset} NULL,
  MODIFY message_id VARCHAR(128) CHARACTER SET ${charset} NULL`;

export const MYSQL_REFUSALS: RefusedRowsOptions = {
  narrow: { utf8mb3: columns("utf8mb3"), latin1: columns("latin1") },
  shorten: "ALTER TABLE local_message MODIFY fail_reason VARCHAR(20) NULL",
  refuseOdd: [
    `CREATE TRIGGER no_odd BEFORE UPDATE ON local_message FOR EACH ROW
  IF NEW.message_key = 'odd' AND NEW.state = 2 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not the odd one'; END IF`,
  ],
  allowOdd: "DROP TRIGGER no_odd",
};
