import { describeWithService, sampled } from "../services.ts";
import { defineSharedTableCases } from "./shared-table.cases.ts";

describeWithService(sampled(["mariadb"], ["mysql9"]), "relays that share a table", ({ name }) =>
  defineSharedTableCases(name),
);
