import { mariadbPrograms } from "../own-servers/own-mariadb.ts";
import { describeWithPrograms } from "../own-servers/own-server.ts";
import { defineFailoverCases } from "./failover.cases.ts";

describeWithPrograms(mariadbPrograms, "a fail-over", () => defineFailoverCases("mariadb"));
