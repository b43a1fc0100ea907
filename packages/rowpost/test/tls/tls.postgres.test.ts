import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import postgresJs from "postgres";
import { expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { freePort } from "../own-servers/free-port.ts";
import { makePostgresData, makeShop, postgresPrograms, startOwnPostgres } from "../own-servers/own-postgres.ts";
import { describeWithPrograms } from "../own-servers/own-server.ts";
import { until } from "../until.ts";
import { OLD_AUTHORITY } from "./certificates.ts";
import { defineTlsCases } from "./tls.cases.ts";

/** Who administers may come without TLS. */
const ACCESS = "host all postgres 127.0.0.1/32 trust\nhostssl shop app 127.0.0.1/32 trust\n";

describeWithPrograms(postgresPrograms, "TLS to the database", () =>
  defineTlsCases(
    {
      async start({ cert, key }) {
        const from = await makePostgresData();
        const server = await startOwnPostgres({
          from,
          port: await freePort(),
          settings: { ssl: "on", ssl_cert_file: cert, ssl_key_file: key },
          prepare: (data) => writeFile(join(data, "pg_hba.conf"), ACCESS),
        });
        await rm(from, { recursive: true });
        await makeShop(server);
        return server;
      },
      async reload(server) {
        const loaded = async (): Promise<unknown> =>
          (await server.sql("SELECT pg_conf_load_time()::text AS at"))[0]?.["at"];
        const before = await loaded();
        await server.sql("SELECT pg_reload_conf()");
        await until(async () => (await loaded()) !== before);
      },
      trusting: (file) => `sslrootcert=${file}&sslmode=verify-full`,
      open: { pg: (url) => postgres({ url }) },
    },
    (bench) => {
      it("an application with postgres.js enqueues over TLS of its own", async () => {
        const { authorities, open, server } = bench();
        const database = open("pg", await authorities(OLD_AUTHORITY));
        const sql = postgresJs(server.url, { ssl: { ca: OLD_AUTHORITY }, max: 1 });
        const outbox = createOutbox({ database });
        await sql.begin(async (tx) => {
          await tx`INSERT INTO orders (id) VALUES ('js-1')`;
          await outbox.enqueue(tx, { type: "order", key: "js-1", topic: "orders", body: {} });
        });
        await sql.end();
        const broker = memory();
        await createRelay({ database, broker, logger: "silent" }).drain();
        expect(broker.published().map(({ key }) => key)).toEqual(["js-1"]);
      });
    },
  ),
);
