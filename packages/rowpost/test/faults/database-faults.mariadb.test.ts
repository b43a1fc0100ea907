import { describeWithService } from "../services.ts";
import { defineDatabaseFaultCases } from "./database-faults.cases.ts";

describeWithService("mariadb", "a relay whose database goes away", () => defineDatabaseFaultCases("mariadb"));
