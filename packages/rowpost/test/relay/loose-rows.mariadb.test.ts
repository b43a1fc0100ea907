import { describeWithService } from "../services.ts";
import { defineLooseRowsCases } from "./loose-rows.cases.ts";

describeWithService("mariadb", "the relay", () => defineLooseRowsCases("mariadb"));
