import { describeWithService } from "../services.ts";
import { defineSteppedClockCases } from "./stepped-clock.cases.ts";

describeWithService("mysql9", "a database clock that was set back", () => defineSteppedClockCases("mysql9"));
