import { describeWithService } from "../services.ts";
import { defineRuleCases } from "./rules.cases.ts";

describeWithService("postgres", "the rules", () => defineRuleCases("postgres"));
