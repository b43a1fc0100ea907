/** The console on servers. */
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import { consoleCases } from "./console.cases.ts";

describeWithService(["mariadb", "postgres"], "console", ({ name }) => {
  consoleCases(async () => {
    const server = await createTestDatabase(name);
    const { url } = server;
    return { database: name === "postgres" ? postgres({ url }) : mysql({ url }), drop: () => server.drop() };
  });
});
