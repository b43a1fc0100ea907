import { describeWithService } from "../services.ts";
import { defineUntakenRowsCases } from "./untaken-rows.cases.ts";
import { MYSQL_UNTAKEN } from "./untaken-rows.mysql.ts";

describeWithService("mysql9", "a row that the table refuses", () => defineUntakenRowsCases("mysql9", MYSQL_UNTAKEN));
