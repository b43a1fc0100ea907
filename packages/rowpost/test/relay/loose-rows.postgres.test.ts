import { describeWithService } from "../services.ts";
import { defineLooseRowsCases } from "./loose-rows.cases.ts";

describeWithService("postgres", "the relay", () => defineLooseRowsCases("postgres"));
