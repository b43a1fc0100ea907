import { describeWithService } from "../services.ts";
import { defineLooseRowsCases } from "./loose-rows.cases.ts";

describeWithService("mysql9", "the relay", () => defineLooseRowsCases("mysql9"));
