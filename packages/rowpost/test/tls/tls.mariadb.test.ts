import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { freePort } from "../own-servers/free-port.ts";
import { makeMariadbData, mariadbPrograms, startOwnMariadb } from "../own-servers/own-mariadb.ts";
import { describeWithPrograms } from "../own-servers/own-server.ts";
import { defineTlsCases } from "./tls.cases.ts";

describeWithPrograms(mariadbPrograms, "TLS to the database", () =>
  defineTlsCases({
    start: async ({ cert, key }) =>
      await startOwnMariadb({
        ...{ port: await freePort(), from: await makeMariadbData() },
        settings: [`--ssl-cert=${cert}`, `--ssl-key=${key}`, "--require-secure-transport=ON"],
      }),
    async reload(server) {
      await server.sql("FLUSH SSL");
    },
    endSessions: "KILL USER app",
    trusting: (file) => `ssl-ca=${file}`,
    open: { mysql2: (url) => mysql({ url }), mariadb: (url) => mariadb({ url }) },
  }),
);
