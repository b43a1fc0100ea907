import { describeWithService, sampled } from "../services.ts";
import { defineLooseRowsCases } from "./loose-rows.cases.ts";

describeWithService(sampled(["mariadb"], ["mysql9"]), "the relay", ({ name }) => defineLooseRowsCases(name));
