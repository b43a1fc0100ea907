import { describeWithService } from "../services.ts";
import { defineOldTransactionCases } from "./old-transactions.cases.ts";

describeWithService("mariadb", "a forgotten transaction", () =>
  defineOldTransactionCases({
    service: "mariadb",
    forget: ["START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT COUNT(*) FROM local_message"],
    ownName: "SELECT 'thread' AS kind, CAST(CONNECTION_ID() AS CHAR) AS name",
  }),
);
