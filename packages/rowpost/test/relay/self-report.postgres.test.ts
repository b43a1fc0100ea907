import { describeWithService } from "../services.ts";
import { defineSelfReportCases } from "./self-report.cases.ts";

describeWithService("postgres", "a relay's report", () => defineSelfReportCases("postgres"));
