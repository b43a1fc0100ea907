import { mysqlPrograms } from "../own-servers/own-mysql.ts";
import { describeWithPrograms } from "../own-servers/own-server.ts";
import { defineFailoverCases } from "./failover.cases.ts";

describeWithPrograms(mysqlPrograms, "a fail-over", () => defineFailoverCases("mysql"));
