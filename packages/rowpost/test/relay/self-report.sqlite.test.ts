import { describe } from "vitest";
import { defineSelfReportCases } from "./self-report.cases.ts";

describe("a relay's report on SQLite", () => defineSelfReportCases("sqlite"));
