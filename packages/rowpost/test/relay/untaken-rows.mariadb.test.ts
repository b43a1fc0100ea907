import { describeWithService } from "../services.ts";
import { defineUntakenRowsCases } from "./untaken-rows.cases.ts";
import { MYSQL_UNTAKEN } from "./untaken-rows.mysql.ts";

describeWithService("mariadb", "a row that the table refuses", () => defineUntakenRowsCases("mariadb", MYSQL_UNTAKEN));
