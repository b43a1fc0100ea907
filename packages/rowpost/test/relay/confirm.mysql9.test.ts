import { describeWithService } from "../services.ts";
import { defineConfirmCases } from "./confirm.cases.ts";

describeWithService("mysql9", "confirmation", () => defineConfirmCases("mysql9"));
