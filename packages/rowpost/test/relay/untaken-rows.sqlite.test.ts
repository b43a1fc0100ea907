import { describe } from "vitest";
import { defineUntakenRowsCases } from "./untaken-rows.cases.ts";

const refusal = (name: string, when: string, table: string): string =>
  `CREATE TRIGGER ${name} BEFORE ${when} ON ${table} WHEN NEW.message_key = 'odd'
  BEGIN SELECT RAISE(ABORT, 'not the odd one'); END`;

describe("a row that the table refuses on SQLite", () =>
  defineUntakenRowsCases("sqlite", {
    refuse: [refusal("no_odd", "UPDATE", "local_message")],
    allow: "DROP TRIGGER no_odd",
    refuseArchive: refusal("no_odd_there", "INSERT", "local_message_archive"),
  }));
