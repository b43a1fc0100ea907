import { describeWithService } from "../services.ts";
import { defineSelfReportCases } from "./self-report.cases.ts";

describeWithService("mariadb", "a relay's report", () => defineSelfReportCases("mariadb"));
