import { describeWithService } from "../services.ts";
import { defineSharedTableCases } from "./shared-table.cases.ts";

describeWithService("postgres", "relays that share a table", () => defineSharedTableCases("postgres"));
