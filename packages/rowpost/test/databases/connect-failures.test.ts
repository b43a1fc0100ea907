/** What a start says of a database that cannot be reached or entered. */
import { expect, test } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { type ConnectionOptions, parseUrl } from "../../src/databases/mysql/connection-options.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { mariadb } from "../../src/databases/mysql/mariadb.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import {
  ConfigurationError,
  createLayout,
  DatabaseUnavailableError,
  defaultLayout,
  migrate,
  type RowpostError,
} from "../../src/index.ts";
import { createTestDatabase, describeWithService, testService } from "../services.ts";

type Change = (url: URL) => void;

const nobody: Change = (url) => {
  url.username = "nobody";
  url.password = "wrong-secret";
};
const nowhere: Change = (url) => {
  url.pathname = "/rowpost_there_is_none";
};
const closed: Change = (url) => {
  url.port = "9";
};
const unknown: Change = (url) => {
  url.hostname = "there-is-none.invalid";
};

const SEEN: readonly (readonly [what: string, Change, new (...args: never) => RowpostError, RegExp])[] = [
  ["a user that there is not", nobody, ConfigurationError, /refuses this user or password/],
  ["a database that there is not", nowhere, ConfigurationError, /there is no database rowpost_there_is_none on \w+:/],
  ["a port where nothing listens", closed, DatabaseUnavailableError, /no database answers at .*:9\//],
  ["a host that there is not", unknown, DatabaseUnavailableError, /the host of .* is not known/],
];

describeWithService(["mariadb", "mysql9", "postgres"], "no way in", ({ address, name: service }) => {
  const url = new URL(address.replace(/^mariadb:/, "mysql:"));
  if (service !== "postgres") url.pathname = "/mysql";
  const drivers: readonly (readonly [string, (url: string) => Database])[] =
    service === "postgres"
      ? [["pg", (given) => postgres({ url: given })]]
      : [
          ["mysql2", (given) => mysql({ url: given })],
          [
            "mariadb",
            (given) => {
              const { database, host, password, port, user } = parseUrl(given);
              const address = { host, port, user, database, ...(password === undefined ? {} : { password }) };
              return mariadb({ ...address, allowPublicKeyRetrieval: true } as ConnectionOptions);
            },
          ],
        ];

  async function failureOf(database: Database): Promise<unknown> {
    const failure: unknown = await migrate(database, { layout: defaultLayout }).catch((error: unknown) => error);
    await database.close();
    return failure;
  }

  for (const [driver, open] of drivers) {
    for (const [what, change, kind, text] of SEEN) {
      test(`${driver}: ${what}`, async () => {
        // The server here lets everybody in.
        if (change === nobody && service === "postgres") url.username = "postgres";
        const changed = new URL(url);
        change(changed);
        const error = await failureOf(open(changed.href));
        expect(error).toBeInstanceOf(kind);
        expect(String(error)).toMatch(text);
        expect(String(error)).not.toContain("secret");
      });
    }
  }

  if (service === "postgres") return;

  test("a URL that names no database", async () => {
    const bare = new URL(url);
    bare.pathname = "";
    const error = await failureOf(mysql({ url: bare.href }));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(String(error)).toMatch(/name the database of the tables in the URL/);
    // It need not, where the table says it.
    const place = await createTestDatabase(service);
    const database = mysql({ url: bare.href });
    try {
      const layout = createLayout({ schema: place.name });
      expect((await migrate(database, { layout })).applied).not.toEqual([]);
    } finally {
      await database.close();
      await place.drop();
    }
  });

  test("the port of PostgreSQL", async () => {
    const other = new URL(testService("postgres").address);
    const { hostname: host, port } = other;
    const error = await failureOf(mysql({ host, port: Number(port), database: "x", connectTimeout: 300 }));
    expect(error).toBeInstanceOf(DatabaseUnavailableError);
    expect(String(error)).toMatch(/is it the port of this kind of database/);
  });
});
