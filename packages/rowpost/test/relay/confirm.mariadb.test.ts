import { describeWithService } from "../services.ts";
import { defineConfirmCases } from "./confirm.cases.ts";

describeWithService("mariadb", "confirmation", () => defineConfirmCases("mariadb"));
