import { describeWithService } from "../services.ts";
import { defineTakeoverCases } from "./takeover.cases.ts";

describeWithService("postgres", "takeover", () => defineTakeoverCases("postgres"));
