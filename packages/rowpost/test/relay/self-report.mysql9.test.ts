import { describeWithService } from "../services.ts";
import { defineSelfReportCases } from "./self-report.cases.ts";

describeWithService("mysql9", "a relay's report", () => defineSelfReportCases("mysql9"));
