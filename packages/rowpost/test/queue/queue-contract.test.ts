import { describeWithService } from "../services.ts";
import { bindQueueContract } from "./bind-queue-contract.ts";
import { serverHarness } from "./queue-harnesses.ts";

describeWithService(["mariadb", "mysql9", "mysql8", "postgres"], "queue contract", ({ name }) => {
  bindQueueContract(name === "postgres" ? "pg" : "mysql2", () => serverHarness(name));
});

describeWithService("mariadb", "queue contract", ({ name }) => {
  bindQueueContract("mariadb driver", () => serverHarness(name, "mariadb"));
});
