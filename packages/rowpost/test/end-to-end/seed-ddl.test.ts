import { expect, test } from "vitest";
import { MESSAGE_TABLE, T_LOCAL_MESSAGE } from "../../src/databases/mysql/seed-tables.ts";
import { seedDdl } from "./seed-place.ts";

test("what `migrate` makes for the seed documents' layouts is the documents' own DDL, character for character", () => {
  expect(`${T_LOCAL_MESSAGE};\n`).toBe(seedDdl("t_local_message"));
  expect(`${MESSAGE_TABLE};\n`).toBe(seedDdl("message_table"));
});
