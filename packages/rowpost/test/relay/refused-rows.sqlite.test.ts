import { describe } from "vitest";
import { defineRefusedRowsCases } from "./refused-rows.cases.ts";

describe("the relay on SQLite", () =>
  defineRefusedRowsCases("sqlite", {
    shorten: `CREATE TRIGGER short BEFORE UPDATE ON local_message WHEN length(NEW.fail_reason) > 20
  BEGIN SELECT RAISE(ABORT, 'too long'); END`,
    refuseOdd: [
      `CREATE TRIGGER no_odd BEFORE UPDATE ON local_message WHEN NEW.message_key = 'odd' AND NEW.state = 2
  BEGIN SELECT RAISE(ABORT, 'not the odd one'); END`,
    ],
    allowOdd: "DROP TRIGGER no_odd",
  }));
