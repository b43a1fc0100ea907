import { describeWithService } from "../services.ts";
import { defineSharedTableCases } from "./shared-table.cases.ts";

describeWithService("mariadb", "relays that share a table", () => defineSharedTableCases("mariadb"));
