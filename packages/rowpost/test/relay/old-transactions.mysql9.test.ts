import { describeWithService } from "../services.ts";
import { defineOldTransactionCases } from "./old-transactions.cases.ts";

describeWithService("mysql9", "a forgotten transaction", () =>
  defineOldTransactionCases({
    service: "mysql9",
    forget: ["START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT COUNT(*) FROM local_message"],
    ownName: "SELECT 'thread' AS kind, CAST(CONNECTION_ID() AS CHAR) AS name",
  }),
);
