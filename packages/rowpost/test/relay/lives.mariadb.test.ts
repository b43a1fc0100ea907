import { describeWithService, sampled } from "../services.ts";
import { defineLivesCases } from "./lives.cases.ts";

describeWithService(sampled(["mariadb"], ["mysql9"]), "lives of messages", ({ name }) => defineLivesCases(name, 60));
