import { describeWithService } from "../services.ts";
import { defineSteppedClockCases } from "./stepped-clock.cases.ts";

describeWithService("mariadb", "a database clock that was set back", () => defineSteppedClockCases("mariadb"));
