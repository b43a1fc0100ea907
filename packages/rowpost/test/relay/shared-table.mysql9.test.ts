import { describeWithService } from "../services.ts";
import { defineSharedTableCases } from "./shared-table.cases.ts";

describeWithService("mysql9", "relays that share a table", () => defineSharedTableCases("mysql9"));
