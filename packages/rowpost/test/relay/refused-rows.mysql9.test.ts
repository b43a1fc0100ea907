import { describeWithService } from "../services.ts";
import { defineRefusedRowsCases } from "./refused-rows.cases.ts";
import { MYSQL_REFUSALS } from "./refused-rows.mysql.ts";

describeWithService("mysql9", "the relay", () => defineRefusedRowsCases("mysql9", MYSQL_REFUSALS));
