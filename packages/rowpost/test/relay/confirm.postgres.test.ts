import { describeWithService } from "../services.ts";
import { defineConfirmCases } from "./confirm.cases.ts";

describeWithService("postgres", "confirmation", () => defineConfirmCases("postgres"));
