import { rm } from "node:fs/promises";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { freePort } from "../own-servers/free-port.ts";
import type { OwnMysqlOptions } from "../own-servers/mysql-family.ts";
import type { OwnServer } from "../own-servers/own-server.ts";
import type { TlsServerKind } from "./tls.cases.ts";

/** What MySQL and MariaDB each have of their own. */
export interface FamilyMember {
  readonly makeData: () => Promise<string>;
  readonly start: (options: OwnMysqlOptions) => Promise<OwnServer>;
  /** SQL that has the certificate read again. */
  readonly reload: string;
}

/** A server of the family, through both drivers. */
export function tlsOfFamily({ makeData, start, reload }: FamilyMember): TlsServerKind {
  return {
    async start({ cert, key, authorities }) {
      const from = await makeData();
      const files = [`--ssl-ca=${authorities}`, `--ssl-cert=${cert}`, `--ssl-key=${key}`];
      const settings = [...files, "--require-secure-transport=ON"];
      const server = await start({ from, port: await freePort(), settings });
      await rm(from, { recursive: true });
      return server;
    },
    async reload(server) {
      await server.sql(reload);
    },
    trusting: (file) => `ssl-ca=${file}`,
    open: { mysql2: (url) => mysql({ url }), mariadb: (url) => mariadb({ url }) },
  };
}
