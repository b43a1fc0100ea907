import { describeWithService } from "../services.ts";
import { defineDatabaseFaultCases } from "./database-faults.cases.ts";

describeWithService("postgres", "a relay whose database goes away", () => defineDatabaseFaultCases("postgres"));
