import { describeWithService, sampled } from "../services.ts";
import { bindQueueContract } from "./bind-queue-contract.ts";
import { serverHarness } from "./queue-harnesses.ts";

/** Every statement runs on MySQL 8 in statements.test.ts, and its flows are those of MySQL 9. */
const SERVERS = sampled<"mariadb" | "mysql9" | "mysql8" | "postgres">(["mariadb", "mysql9", "postgres"], ["mysql8"]);

describeWithService(SERVERS, "queue contract", ({ name }) => {
  bindQueueContract(name === "postgres" ? "pg" : "mysql2", () => serverHarness(name));
});

describeWithService("mariadb", "queue contract", ({ name }) => {
  bindQueueContract("mariadb driver", () => serverHarness(name, "mariadb"));
});
