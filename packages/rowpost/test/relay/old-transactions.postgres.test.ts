import { describeWithService } from "../services.ts";
import { defineOldTransactionCases } from "./old-transactions.cases.ts";

describeWithService("postgres", "a forgotten transaction", () =>
  defineOldTransactionCases({
    service: "postgres",
    forget: ["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM local_message"],
    ownName: "SELECT 'process' AS kind, pg_backend_pid()::text AS name",
  }),
);
