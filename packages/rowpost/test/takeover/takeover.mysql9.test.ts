import { describeWithService } from "../services.ts";
import { defineTakeoverCases } from "./takeover.cases.ts";

describeWithService("mysql9", "takeover", () => defineTakeoverCases("mysql9"));
