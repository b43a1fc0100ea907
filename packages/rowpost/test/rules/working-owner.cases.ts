/**
 * Two relays on one table; the statements of one of them fail, and its heartbeats work. It must not
 * keep the shards that it can do nothing with (rule: working-owner).
 */
import { afterEach, beforeEach, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import type { RelayStore } from "../../src/relay/store.ts";
import type { Logger } from "../../src/runtime/logger.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "../relay/bench-database.ts";

const SENT = 2;
const MESSAGES = 32;
const nothing = (): void => undefined;
const USER = `rowpost_ill_${process.pid}`;

/** A database object of one relay whose statements can be made to fail. */
interface Patient {
  readonly database: Database;
  fallIll(): Promise<void>;
  getWell(): Promise<void>;
}

export function defineWorkingOwnerCases(service: RelayTestService): void {
  let table: RelayTestDatabase;
  let relays: Relay[];
  let closers: (() => Promise<unknown>)[];

  beforeEach(async () => {
    table = await createRelayDatabase(service);
    [relays, closers] = [[], []];
  });
  afterEach(async () => {
    for (const relay of relays) await relay.stop();
    for (const close of closers.reverse()) await close();
    await table.drop();
  });

  function relayOn(database: Database) {
    const warnings: { readonly line: string; readonly error: unknown }[] = [];
    let warned = nothing;
    const isWarned = new Promise<void>((resolve) => {
      warned = resolve;
    });
    const warn: Logger["warn"] = (line, fields) => {
      if (!line.startsWith("scans, claims or settles")) return;
      warnings.push({ line, error: fields?.["error"] });
      warned();
    };
    const relay = createRelay({
      database,
      broker: memory(),
      logger: { debug: nothing, info: nothing, warn, error: nothing },
      publishTimeoutMs: 100,
      leaseMs: 800,
      heartbeatMs: 50,
      housekeepingMs: 50,
    });
    relays.push(relay);
    return { relay, warnings, isWarned };
  }

  /** Recorded in the table, and by this relay. */
  async function untilSentBy({ relay }: { readonly relay: Relay }): Promise<void> {
    await expect
      .poll(() => relay.counts, { timeout: 30_000, interval: 50 })
      .toMatchObject({ sent: MESSAGES, fenced: 0 });
    expect(await table.states()).toEqual({ [SENT]: MESSAGES });
  }

  async function insertAll(): Promise<void> {
    await table.insert(
      Array.from({ length: MESSAGES }, (_, index) => ({ key: String(index), orderingKey: `k${index}` })),
    );
  }

  /** A server's user loses a right; on SQLite the statement fails. */
  async function without(right: "SELECT" | "UPDATE", change: Change): Promise<Patient> {
    return service === "sqlite" ? failing(table.connect(), change) : await revoked(right);
  }

  async function revoked(right: "SELECT" | "UPDATE"): Promise<Patient> {
    const isMysql = service !== "postgres";
    const url = new URL(table.url);
    const tables = await table.sql(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = ${isMysql ? "DATABASE()" : "'public'"}`,
    );
    await table.sql(isMysql ? `CREATE USER ${USER} IDENTIFIED BY 'Pw_1'` : `CREATE ROLE ${USER} LOGIN PASSWORD 'Pw_1'`);
    closers.push(async () => {
      if (!isMysql) await table.sql(`DROP OWNED BY ${USER}`);
      await table.sql(`DROP ${isMysql ? "USER" : "ROLE"} ${USER}`);
    });
    for (const { name } of tables)
      await table.sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${String(name)} TO ${USER}`);
    [url.username, url.password] = [USER, "Pw_1"];
    const database = isMysql ? mysql({ url: url.href }) : postgres({ url: url.href });
    closers.push(() => database.close());
    return {
      database,
      fallIll: async () => void (await table.sql(`REVOKE ${right} ON local_message FROM ${USER}`)),
      getWell: async () => void (await table.sql(`GRANT ${right} ON local_message TO ${USER}`)),
    };
  }

  type Call = <Request, Answer>(work: (request: Request) => Promise<Answer>) => (request: Request) => Promise<Answer>;

  type Change = (store: RelayStore, call: Call) => Partial<RelayStore>;

  function failing(plain: Database, change: Change): Patient {
    let isIll = false;
    const call: Call = (work) => (request) => (isIll ? Promise.reject(new Error("a poisoned session")) : work(request));
    const relayStore: Database["relayStore"] = (options) => {
      const store = plain.relayStore(options);
      return { ...store, ...change(store, call) };
    };
    return {
      database: { ...plain, relayStore },
      async fallIll() {
        isIll = true;
      },
      async getWell() {
        isIll = false;
      },
    };
  }

  it("a relay that cannot scan gives its shards up, says so once, and takes part again when it can", async () => {
    const patient = await without("SELECT", (store, call) => ({
      scan: call((request: Parameters<RelayStore["scan"]>[0]) => store.scan(request)),
    }));
    const ill = relayOn(patient.database);
    await ill.relay.start();
    const isIll = new Promise<void>((resolve) => ill.relay.on("databaseAway", () => resolve()));
    await patient.fallIll();
    await isIll;
    await insertAll();
    await ill.isWarned;
    const well = relayOn(table.connect());
    await well.relay.start();
    await untilSentBy(well);
    expect(ill.warnings).toEqual([
      { line: expect.any(String), error: expect.stringMatching(/denied|poisoned session/) },
    ]);
    expect(well.warnings).toEqual([]);
    const isBack = new Promise<void>((resolve) => ill.relay.on("shardsAcquired", () => resolve()));
    await patient.getWell();
    await well.relay.stop();
    await isBack;
    expect(ill.warnings).toHaveLength(1);
  });

  it("a relay that cannot claim gives its shards up, and leaves its messages to others", async () => {
    const patient = await without("UPDATE", (store, call) => ({
      claim: call((request: Parameters<RelayStore["claim"]>[0]) => store.claim(request)),
    }));
    const ill = relayOn(patient.database);
    await ill.relay.start();
    await patient.fallIll();
    await insertAll();
    await ill.isWarned;
    const well = relayOn(table.connect());
    await well.relay.start();
    await untilSentBy(well);
    expect(ill.warnings[0]).toEqual({
      line: expect.any(String),
      error: expect.stringMatching(/denied|poisoned session/),
    });
    expect(well.warnings).toEqual([]);
    // It takes part again, cannot take its share over, and must not keep it from the other one.
    if (service !== "sqlite") await expect.poll(() => ill.warnings.length, { timeout: 30_000 }).toBeGreaterThan(1);
  });

  it("a relay that cannot settle leaves its messages to others", async () => {
    const patient = failing(table.connect(), (store, call) => ({
      settle: call((request: Parameters<RelayStore["settle"]>[0]) => store.settle(request)),
    }));
    await patient.fallIll();
    const ill = relayOn(patient.database);
    await insertAll();
    await ill.relay.start();
    const well = relayOn(table.connect());
    await well.relay.start();
    await untilSentBy(well);
    expect(ill.warnings.length).toBeGreaterThan(0);
  });
}
