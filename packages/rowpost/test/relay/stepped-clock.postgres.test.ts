import { describeWithService } from "../services.ts";
import { defineSteppedClockCases } from "./stepped-clock.cases.ts";

describeWithService("postgres", "a database clock that was set back", () => defineSteppedClockCases("postgres"));
