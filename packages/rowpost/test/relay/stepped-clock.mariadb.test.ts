import { describeWithService, sampled } from "../services.ts";
import { defineSteppedClockCases } from "./stepped-clock.cases.ts";

describeWithService(sampled(["mariadb"], ["mysql9"]), "a database clock that was set back", ({ name }) =>
  defineSteppedClockCases(name),
);
