import { postgresPrograms } from "../own-servers/own-postgres.ts";
import { describeWithPrograms } from "../own-servers/own-server.ts";
import { defineFailoverCases } from "./failover.cases.ts";

describeWithPrograms(postgresPrograms, "a fail-over", () => defineFailoverCases("postgres"));
