import { expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { ConfigurationError } from "../../src/runtime/errors.ts";
import { makeMysqlData, mysqlPrograms, startOwnMysql } from "../own-servers/own-mysql.ts";
import { describeWithPrograms } from "../own-servers/own-server.ts";
import { tlsOfFamily } from "./mysql-family.ts";
import { defineTlsCases } from "./tls.cases.ts";

describeWithPrograms(mysqlPrograms, "TLS to the database", () => {
  const kind = tlsOfFamily({ makeData: makeMysqlData, start: startOwnMysql, reload: "ALTER INSTANCE RELOAD TLS" });
  defineTlsCases(kind, (bench) => {
    // MariaDB says "Access denied", as for a wrong password.
    it.each(Object.entries(kind.open))(
      "%s, without TLS: the start is refused with the name of the setting",
      async (_, open) => {
        const database = open(bench().server.url);
        const starting = createRelay({ database, broker: memory(), logger: "silent" }).start();
        await expect(starting).rejects.toThrow(ConfigurationError);
        await expect(starting).rejects.toThrow(/takes connections with TLS alone.*\?ssl-ca=PATH/);
        await database.close();
      },
    );
  });
});
