/** The console's queue pages on servers. */
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { consoleQueueCases } from "./console-queue.cases.ts";

describeWithService(["mariadb", "postgres"], "console, the queue", ({ name }) => {
  consoleQueueCases(async () => {
    const server = await createTestDatabase(name);
    const { url } = server;
    return { database: name === "postgres" ? postgres({ url }) : mysql({ url }), drop: () => server.drop() };
  });
});
