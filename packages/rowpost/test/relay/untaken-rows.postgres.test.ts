import { describeWithService } from "../services.ts";
import { defineUntakenRowsCases } from "./untaken-rows.cases.ts";

/** As somebody adds a rule to a table in use: old rows need not meet it, until they are changed. */
describeWithService("postgres", "a row that the table refuses", () =>
  defineUntakenRowsCases("postgres", {
    refuse: ["ALTER TABLE local_message ADD CONSTRAINT no_odd CHECK (message_key <> 'odd') NOT VALID"],
    allow: "ALTER TABLE local_message DROP CONSTRAINT no_odd",
    refuseArchive: "ALTER TABLE local_message_archive ADD CONSTRAINT no_odd CHECK (message_key <> 'odd')",
  }),
);
