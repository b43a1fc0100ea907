import { describeWithService } from "../services.ts";
import { defineSeedTableCases } from "./seed-tables.cases.ts";

describeWithService("mariadb", "the seed documents' tables", (service) => {
  describeWithService("rocketmq", "to RocketMQ", () => defineSeedTableCases(service.name));
});
