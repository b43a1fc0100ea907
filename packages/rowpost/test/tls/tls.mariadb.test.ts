import { makeMariadbData, mariadbPrograms, startOwnMariadb } from "../own-servers/own-mariadb.ts";
import { describeWithPrograms } from "../own-servers/own-server.ts";
import { tlsOfFamily } from "./mysql-family.ts";
import { defineTlsCases } from "./tls.cases.ts";

describeWithPrograms(mariadbPrograms, "TLS to the database", () =>
  defineTlsCases(tlsOfFamily({ makeData: makeMariadbData, start: startOwnMariadb, reload: "FLUSH SSL" })),
);
