/**
 * A relay whose connections to the database have TLS: an authority that it does not know, and a
 * certificate that is replaced while it runs, by one of another authority.
 */
import { chmod, chown, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import type { Database } from "../../src/databases/database.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { ConfigurationError } from "../../src/runtime/errors.ts";
import { createShop, judge, makeTables } from "../failover/orders.ts";
import { type OwnServer, temporaryFolder } from "../own-servers/own-server.ts";
import { until } from "../until.ts";
import { NEW_AUTHORITY, NEW_SERVER, OLD_AUTHORITY, OLD_SERVER } from "./certificates.ts";

/** Where a server finds its certificate. */
export interface ServerFiles {
  readonly cert: string;
  readonly key: string;
  /** With both authorities: MySQL reads no certificate again that is of none that it knows. */
  readonly authorities: string;
}

/** What a kind of server does its own way. */
export interface TlsServerKind {
  /** Starts one that takes no application without TLS. */
  start(files: ServerFiles): Promise<OwnServer>;
  /** Has the certificate read again; resolves when new connections get that one. */
  reload(server: OwnServer): Promise<void>;
  /** What goes behind the URL of the server. */
  trusting(file: string): string;
  /** By driver. */
  readonly open: Readonly<Record<string, (url: string) => Database>>;
}

export interface TlsBench {
  readonly server: OwnServer;
  /** A file with these authorities. */
  readonly authorities: (...pem: readonly string[]) => Promise<string>;
  readonly open: (driver: string, file: string) => Database;
}

/** Defines the tests for one kind of server; `more` gets the same server. */
export function defineTlsCases(kind: TlsServerKind, more?: (bench: () => TlsBench) => void): void {
  const databases: Database[] = [];
  const relays: Relay[] = [];
  let folder = "";
  let server: OwnServer | undefined;
  let files = 0;

  const bench = (): TlsBench => {
    if (server === undefined) throw new Error("only within a test");
    const { url } = server;
    return {
      server,
      async authorities(...pem) {
        files += 1;
        const file = join(folder, `authorities-${files}.pem`);
        await writeFile(file, pem.join(""));
        return file;
      },
      open(driver, file) {
        const database = kind.open[driver]?.(`${url}?${kind.trusting(file)}`);
        if (database === undefined) throw new Error(`no driver ${driver}`);
        databases.push(database);
        return database;
      },
    };
  };

  /** Gives the server another certificate, and ends the sessions that go by the one before. */
  async function renew({ cert, key }: typeof OLD_SERVER | typeof NEW_SERVER): Promise<void> {
    await writeForServer(join(folder, "cert.pem"), cert);
    await writeForServer(join(folder, "key.pem"), key);
    await kind.reload(bench().server);
    await bench().server.endSessions();
  }

  beforeAll(async () => {
    folder = await temporaryFolder("tls");
    const at = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem"), authorities: join(folder, "ca.pem") };
    await writeForServer(at.cert, OLD_SERVER.cert);
    await writeForServer(at.key, OLD_SERVER.key);
    await writeForServer(at.authorities, OLD_AUTHORITY + NEW_AUTHORITY);
    server = await kind.start(at);
    const database = bench().open(Object.keys(kind.open)[0] ?? "", await bench().authorities(OLD_AUTHORITY));
    await makeTables(database);
  });
  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await renew(OLD_SERVER);
    await Promise.all(databases.splice(0).map((database) => database.close()));
  });
  afterAll(async () => {
    await server?.drop();
    await rm(folder, { recursive: true, force: true });
  });

  function relayOn(database: Database, broker: ReturnType<typeof memory>, said: string[] = []): Relay {
    const note = (_line: string, fields?: Readonly<Record<string, unknown>>): void => {
      said.push(String(fields?.["error"]));
    };
    const logger = { debug: () => {}, info: () => {}, warn: note, error: note };
    const relay = createRelay({ database, broker, logger, heartbeatMs: 500, drainTimeoutMs: 2_000 });
    relays.push(relay);
    return relay;
  }

  describe.each(Object.keys(kind.open))("through %s", (driver) => {
    it("an authority that is not known: the start is refused with the name of the setting", async () => {
      const { authorities, open } = bench();
      const database = open(driver, await authorities(NEW_AUTHORITY));
      const starting = relayOn(database, memory()).start();
      await expect(starting).rejects.toThrow(ConfigurationError);
      const setting = kind.trusting("PATH").split("=")[0] ?? "";
      await expect(starting).rejects.toThrow(`the certificate of the server is not trusted`);
      await expect(starting).rejects.toThrow(setting);
    });

    it("a certificate of another authority while the relay runs: it says so, and goes on once its file has that one too", async () => {
      const { authorities, open } = bench();
      const file = await authorities(OLD_AUTHORITY);
      const said: string[] = [];
      const broker = memory();
      await relayOn(open(driver, file), broker, said).start();
      const before = createShop(open(driver, file), `${driver}before`);
      await before.place(2);
      await broker.waitFor(6, { withinMs: 60_000 });

      await renew(NEW_SERVER);
      await until(() => said.some((line) => line.includes("the certificate of the server is not trusted")));
      const renewed = open(driver, await authorities(NEW_AUTHORITY));
      await createShop(renewed, `${driver}renewed`).place(2);
      expect(broker.published()).toHaveLength(6);

      await writeFile(file, OLD_AUTHORITY + NEW_AUTHORITY);
      await broker.waitFor(12, { withinMs: 60_000 });

      // Both are in the file now: the next change is none to the relay, but for its connections.
      said.length = 0;
      await renew(OLD_SERVER);
      await createShop(open(driver, file), `${driver}back`).place(2);
      await broker.waitFor(18, { withinMs: 60_000 });
      expect(said.filter((line) => line.includes("certificate"))).toEqual([]);
      const delivered = broker.published().map(({ key }) => key);
      expect(await judge({ delivered, on: open(driver, file), of: driver })).toBe(0);
    });
  });

  more?.(bench);
}

/** A key has to belong to whom the server runs as, and to nobody else. */
async function writeForServer(path: string, text: string): Promise<void> {
  await writeFile(path, text);
  await chmod(path, 0o600);
  if (process.getuid?.() === 0) await chown(path, 65534, 65534);
}
