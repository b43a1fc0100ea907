import { describeWithService, sampled } from "../services.ts";
import { defineConfirmCases } from "./confirm.cases.ts";

describeWithService(sampled(["mariadb"], ["mysql9"]), "confirmation", ({ name }) => defineConfirmCases(name));
