import { describeWithService } from "../services.ts";
import { defineDefaultTableCases } from "./default-table.cases.ts";

describeWithService("mariadb", "the default table", (service) => {
  describeWithService("rocketmq", "to RocketMQ", () => defineDefaultTableCases(service.name));
});
