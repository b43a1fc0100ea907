import { describeWithService } from "../services.ts";
import { defineRefusedRowsCases } from "./refused-rows.cases.ts";
import { MYSQL_REFUSALS } from "./refused-rows.mysql.ts";

describeWithService("mariadb", "the relay", () => defineRefusedRowsCases("mariadb", MYSQL_REFUSALS));
