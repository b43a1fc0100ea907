import { describeWithService, sampled } from "../services.ts";
import { defineSelfReportCases } from "./self-report.cases.ts";

describeWithService(sampled(["mariadb"], ["mysql9"]), "a relay's report", ({ name }) => defineSelfReportCases(name));
