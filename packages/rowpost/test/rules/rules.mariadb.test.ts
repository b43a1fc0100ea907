import { describeWithService } from "../services.ts";
import { defineRuleCases } from "./rules.cases.ts";

describeWithService("mariadb", "the rules", () => defineRuleCases("mariadb"));
