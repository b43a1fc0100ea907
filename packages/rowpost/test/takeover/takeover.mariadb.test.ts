import { describeWithService } from "../services.ts";
import { defineTakeoverCases } from "./takeover.cases.ts";

describeWithService("mariadb", "takeover", () => defineTakeoverCases("mariadb"));
