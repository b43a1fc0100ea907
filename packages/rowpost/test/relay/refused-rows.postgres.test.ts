import { describeWithService } from "../services.ts";
import { defineRefusedRowsCases } from "./refused-rows.cases.ts";

describeWithService("postgres", "the relay", () =>
  defineRefusedRowsCases("postgres", {
    shorten: "ALTER TABLE local_message ALTER fail_reason TYPE varchar(20)",
    refuseOdd: [
      "CREATE FUNCTION no_odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not the odd one'; END $$",
      `CREATE TRIGGER no_odd BEFORE UPDATE ON local_message FOR EACH ROW
  WHEN (NEW.message_key = 'odd' AND NEW.state = 2) EXECUTE FUNCTION no_odd()`,
    ],
    allowOdd: "DROP TRIGGER no_odd ON local_message",
  }),
);
