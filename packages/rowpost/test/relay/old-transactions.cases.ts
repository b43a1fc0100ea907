/**
 * Somebody's transaction is forgotten, and other programs go on writing. The relay says whose it is
 * when its scans become slow, or when it has become very old. The relay's clock is the test's, so
 * that a scan is as slow as the test says; that of the database is the server's.
 */
import { afterEach, beforeEach, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import type { Database, Session } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { oldTransactions } from "../../src/databases/mysql/old-transactions.ts";
import { createRelay } from "../../src/relay/relay.ts";
import type { HousekeepingStore } from "../../src/relay/store.ts";
import { createManualClock } from "../../src/testing/manual-clock.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "./bench-database.ts";

const LINE = "a transaction that is open for long keeps old row versions, and scans become slower";
const nothing = (): void => undefined;
type Request = Parameters<HousekeepingStore["oldTransactions"]>[0];

/** What differs from server to server. */
export interface OldTransactionCases {
  readonly service: RelayTestService;
  /** Begins a transaction that sees the table as it is now, and does not end it. */
  readonly forget: readonly string[];
  /** SELECT of what names the session, as `kind` and `name`. */
  readonly ownName: string;
}

export function defineOldTransactionCases({ forget, ownName, service }: OldTransactionCases): void {
  let table: RelayTestDatabase;
  let session: Session | undefined;
  beforeEach(async () => {
    table = await createRelayDatabase(service);
  });
  afterEach(async () => {
    await session?.close();
    session = undefined;
    await table.drop();
  });

  /** The transaction, and some writes since. */
  async function forgotten(): Promise<Readonly<Record<string, unknown>>> {
    const own = await table.connect().connect({ purpose: "tool" });
    session = own;
    const run = async (text: string) => (await own.run({ name: "test", text, params: [] })).rows;
    for (const text of forget) await run(text);
    const [name = {}] = await run(ownName);
    await table.insert([{ key: "1" }]);
    for (let write = 0; write < 40; write += 1) await table.sql("UPDATE local_message SET retry_count = 0");
    return name;
  }

  /** A relay whose scans take so long; what it asked for, as if the limits were lower, and told. */
  function relayWith(scanMs: number, change: (database: HousekeepingStore) => Partial<HousekeepingStore> = () => ({})) {
    const clock = createManualClock();
    const asked: Request[] = [];
    const told: (object | undefined)[] = [];
    const plain = table.connect();
    const database: Database = {
      ...plain,
      relayStore(options) {
        const store = plain.relayStore(options);
        const { housekeeping } = store;
        return {
          ...store,
          async scan(request) {
            const rows = await store.scan(request);
            await clock.advance(scanMs);
            return rows;
          },
          housekeeping: {
            ...housekeeping,
            async oldTransactions(request) {
              asked.push(request);
              const lower = { olderThanMs: 0, heldTransactions: 1 };
              return await housekeeping.oldTransactions(lower);
            },
            ...change(housekeeping),
          },
        };
      },
    };
    const warn = (line: string, fields?: object): void => void (line === LINE && told.push(fields));
    const relay = createRelay({
      database,
      broker: memory(),
      clock,
      housekeepingMs: 10,
      drainTimeoutMs: 0,
      logger: { debug: nothing, info: nothing, warn, error: nothing },
    });
    const minutes = async (count: number): Promise<void> => {
      for (let minute = 0; minute < count; minute += 1) {
        await relay.tick();
        await clock.advance(61_000);
      }
    };
    return { relay, asked, told, minutes };
  }

  it("names it once, and looks once a minute, more closely while scans are slow", async () => {
    const name = await forgotten();
    const slow = relayWith(101);
    await slow.minutes(3);
    await slow.relay.stop();
    const { kind, name: number } = name as { kind: string; name: string };
    expect(slow.told.filter((fields) => fields !== undefined && Reflect.get(fields, kind) === String(number))).toEqual([
      expect.objectContaining({ user: expect.stringMatching(/^(postgres|root)/), slowestScanMs: 101 }),
    ]);
    expect(slow.asked).toHaveLength(3);
    expect(slow.asked.at(-1)).toEqual({ olderThanMs: 10_000, heldTransactions: 1_000 });
    const fast = relayWith(1);
    await fast.minutes(2);
    await fast.relay.stop();
    expect(fast.asked.at(-1)).toEqual({ olderThanMs: 300_000, heldTransactions: 100_000 });
  });

  it("tells nothing of one that has ended, or is younger, or keeps less", async () => {
    const { name } = await forgotten();
    const { housekeeping, ...store } = table.connect().relayStore({ layout: table.connect().defaultLayout });
    const listed = async (olderThanMs: number, heldTransactions: number) =>
      (await housekeeping.oldTransactions({ olderThanMs, heldTransactions }))?.map((one) => one.name) ?? [];
    // The five oldest of the server are told: those of other tests may have to end first. And
    // InnoDB renews its list only when nobody has read it for 100 ms.
    const patience = { timeout: 180_000, interval: 250 };
    await expect.poll(() => listed(0, 1), patience).toContain(String(name));
    expect(await listed(3_600_000, 1)).not.toContain(String(name));
    expect(await listed(0, 900_000_000)).toEqual([]);
    await session?.close();
    await expect.poll(() => listed(0, 1), patience).not.toContain(String(name));
    await store.close();
  });

  it("asks no more when the user may not look, and works on", async () => {
    let times = 0;
    const denied = relayWith(101, () => ({
      oldTransactions() {
        times += 1;
        return Promise.resolve(undefined);
      },
    }));
    await table.insert([{ key: "1" }]);
    await denied.minutes(3);
    await denied.relay.stop();
    expect([denied.told, times]).toEqual([[], 1]);
    expect(await table.states()).toEqual({ 2: 1 });
  });

  if (service === "postgres") return;

  it("takes a missing right for no error", async () => {
    const address = new URL(table.url);
    const user = `u${address.pathname.slice(-8)}`;
    await table.sql(`CREATE USER ${user} IDENTIFIED BY 'Pw_1'`);
    await table.sql(`GRANT ALL ON ${address.pathname.slice(1)}.* TO ${user}`);
    address.username = user;
    address.password = "Pw_1";
    const database = mysql({ url: address.href });
    const store = database.relayStore({ layout: database.defaultLayout });
    expect(await store.housekeeping.oldTransactions({ olderThanMs: 0, heldTransactions: 0 })).toBeUndefined();
    await store.close();
    await database.close();
    await table.sql(`DROP USER ${user}`);
  });

  it("knows the age in whatever zone the session is", async () => {
    const { name } = await forgotten();
    const own = await table.connect().connect({ purpose: "tool" });
    for (const zone of ["+08:00", "-08:00"]) {
      await own.run({ name: "test", text: `SET time_zone = '${zone}'`, params: [] });
      const old = await own.run(oldTransactions({ olderThanMs: 3_600_000, heldTransactions: 0 }));
      expect(old.rows.map((row) => row["name"])).not.toContain(name);
      const young = async () =>
        (await own.run(oldTransactions({ olderThanMs: 0, heldTransactions: 0 }))).rows.map((row) => row["name"]);
      await expect.poll(young).toContain(name);
    }
    await own.close();
  });
}
