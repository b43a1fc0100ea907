import { describeWithService } from "../services.ts";
import { defineIsolationCases } from "./isolation.cases.ts";

describeWithService("postgres", "isolation", () => defineIsolationCases("postgres"));
