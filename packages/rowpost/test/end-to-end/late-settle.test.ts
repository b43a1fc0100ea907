/**
 * Rule: claim-token in `t_local_message`, which has nothing that tells one claim of a row from the
 * next: the record of a first attempt is lost on the way, is written again, the row is claimed a
 * second time, and then the lost copy arrives. It must not touch the second attempt.
 */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { PublishResult } from "../../src/brokers/broker.ts";
import { type MemoryBroker, memory } from "../../src/brokers/memory.ts";
import type { Database, Session, SessionOptions } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { createStatements } from "../../src/databases/mysql/statements.ts";
import { tLocalMessageLayout } from "../../src/databases/sql/layouts.ts";
import { createRelayStore } from "../../src/databases/sql/relay-store.ts";
import type { FaultPoint } from "../../src/relay/options.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { createTcpProxy, type TcpProxy } from "../../src/testing/tcp-proxy.ts";
import { describeWithService } from "../services.ts";
import { createLendingPool, type LendingPool } from "./lending-pool.ts";
import { connectPlain, type PlainClient } from "./plain-client.ts";
import { createSeedPlace, type SeedPlace } from "./seed-place.ts";

const layout = tLocalMessageLayout;
const { pending, sending, sent } = layout.states;
const FAILED_ONCE: PublishResult = {
  status: "failed",
  scope: "message",
  retriable: true,
  code: "BUSY",
  reason: "not now",
  retryAfterMs: 0,
};
/** The statement that records anything but a receipt. */
const SETTLE = /^UPDATE.*retry_delta/s;
/**
 * The client gives a statement up after this long, and the server waits longer than that for a
 * lock.
 */
const SHORT = { statementTimeoutMs: 600, lockWaitTimeoutMs: 20_000 };

describeWithService(["mariadb", "mysql9"], "a late settle without a claim token", (service) => {
  let place: SeedPlace;
  let proxy: TcpProxy;
  let holder: PlainClient;
  let pool: LendingPool | undefined;
  let relay: Relay | undefined;

  beforeEach(async () => {
    place = await createSeedPlace(service.name, { layout });
    const { hostname, port } = new URL(place.url);
    proxy = await createTcpProxy({ target: { host: hostname, port: Number(port) } });
    holder = await connectPlain(place.url);
    await place.insert([{ key: "m", topic: "orders" }]);
  });
  afterEach(async () => {
    proxy.unmute();
    await holder.close();
    await relay?.stop();
    pool?.destroy();
    await proxy.close();
    await place.drop();
  });

  /**
   * The first attempt fails and is to be tried again at once; the second one is accepted when
   * `accept` is called.
   */
  function brokerOfTwo(): {
    readonly broker: MemoryBroker;
    readonly accept: () => void;
    readonly second: Promise<void>;
    readonly attempts: () => number;
  } {
    let attempts = 0;
    let begun = (): void => {};
    const second = new Promise<void>((resolve) => {
      begun = resolve;
    });
    let accept = (): void => {};
    const accepted = new Promise<undefined>((resolve) => {
      accept = () => resolve(undefined);
    });
    const broker = memory({
      outcome: () => {
        attempts += 1;
        if (attempts === 1) return FAILED_ONCE;
        if (attempts === 2) begun();
        return accepted;
      },
    });
    return { broker, accept: () => accept(), second, attempts: () => attempts };
  }

  /**
   * A relay whose sessions are opened by `connect`. `guarded` false: nobody kills a session that
   * was given up.
   */
  function startRelay(options: {
    readonly broker: MemoryBroker;
    readonly guarded: boolean;
    readonly connect: (options: SessionOptions) => Promise<Session>;
    readonly onFaultPoint?: (point: FaultPoint) => void | Promise<void>;
  }): Relay {
    const store = createRelayStore({
      layout,
      statements: createStatements(layout),
      connect: async (sessionOptions) => {
        const session = await options.connect(sessionOptions);
        return options.guarded ? session : withoutAbandon(session);
      },
      isRowRefused: () => false,
    });
    const database: Database = {
      ...place.database,
      relayStore: () => ({ ...store, open: (chosen) => store.open({ ...chosen, ...SHORT }) }),
    };
    const { broker, onFaultPoint } = options;
    // No sweep of stray rows within the test: what it would mend must not be there in the first
    // place.
    relay = createRelay({ database, broker, layout, leaseMs: 20_000, publishTimeoutMs: 9_000, onFaultPoint });
    return relay;
  }

  /**
   * The statement stays on the wire until the row is claimed for the second time. Returns the row
   * as the late copy left it, and the relay's end.
   */
  async function lateOnTheWire(guarded: boolean) {
    const { broker, accept, second, attempts } = brokerOfTwo();
    let lost = false;
    pool = createLendingPool({
      address: () => (lost ? place.url : place.url.replace(/:\d+\//, `:${proxy.port}/`)),
      onStatement(text) {
        if (!lost && SETTLE.test(text)) {
          lost = true;
          proxy.mute("toTarget");
        }
        return text;
      },
    });
    const slow = mysql({ pool });
    const made = startRelay({ broker, guarded, connect: (options) => slow.connect(options) });
    await made.start();
    await second;
    expect(await place.row("m")).toMatchObject({ state: sending, retries: 1 });
    proxy.unmute();
    // Either nobody is left to take the bytes, or they have had their effect.
    const decided = async () => proxy.connectionCount() === 0 || (await place.row("m")).retries !== 1;
    await expect.poll(decided, { timeout: 30_000 }).toBe(true);
    const row = await place.row("m");
    accept();
    await expect.poll(async () => (await place.row("m")).state, { timeout: 30_000 }).toBe(sent);
    await made.stop();
    return { row, attempts: attempts(), counts: made.counts, end: await place.row("m") };
  }

  test("that was lost on the wire reaches nobody", async () => {
    const { row, attempts, counts, end } = await lateOnTheWire(true);
    expect(row).toMatchObject({ state: sending, retries: 1 });
    expect(attempts).toBe(2);
    expect(counts).toMatchObject({ sent: 1, retried: 1, fenced: 0 });
    expect(end).toMatchObject({ state: sent, retries: 1, reason: null });
  });

  test("guard removed: it ends the second attempt in the table, and the message is published a third time", async () => {
    const { row, attempts, counts } = await lateOnTheWire(false);
    expect(row).toMatchObject({ state: pending, retries: 2 });
    expect(attempts).toBe(3);
    expect(counts.fenced).toBe(1);
  });

  /** Connections to this database whose settle waits for a lock. */
  async function waiting(): Promise<readonly string[]> {
    const waits = await place.plain.sql(
      `SELECT trx_mysql_thread_id AS id FROM information_schema.innodb_trx
  WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%retry_delta%'`,
    );
    const name = new URL(place.url).pathname.slice(1);
    const sessions = await place.plain.sql("SHOW FULL PROCESSLIST");
    const here = sessions.filter(({ db }) => db === name).map(({ Id }) => String(Id));
    return waits.map(({ id }) => String(id)).filter((id) => here.includes(id));
  }

  /**
   * The statement waits on the server for a row that somebody holds, and the client gives it up.
   * How many copies wait when the second one does?
   */
  async function copiesThatWait(guarded: boolean): Promise<number> {
    const { broker, accept } = brokerOfTwo();
    accept();
    let held = false;
    const made = startRelay({
      broker,
      guarded,
      connect: (options) => place.database.connect(options),
      async onFaultPoint(point) {
        if (point !== "beforeSettle" || held) return;
        held = true;
        await holder.sql("BEGIN");
        await holder.sql("SELECT id FROM t_local_message FOR UPDATE");
      },
    });
    await made.start();
    let copies: readonly string[] = [];
    const look = async (): Promise<readonly string[]> => {
      copies = await waiting();
      return copies;
    };
    // The server refreshes this view only when nobody has read it for 0.1 s.
    const slowly = { timeout: 30_000, interval: 150 };
    await expect.poll(look, slowly).toHaveLength(1);
    const [first] = copies;
    await expect.poll(async () => (await look()).some((id) => id !== first), slowly).toBe(true);
    await holder.sql("COMMIT");
    await expect.poll(async () => (await place.row("m")).state, { timeout: 30_000 }).toBe(sent);
    return copies.length;
  }

  test("that waits for a lock is dead before it is written again", async () => {
    expect(await copiesThatWait(true)).toBe(1);
  });

  test("guard removed: both copies wait on the server", async () => {
    expect(await copiesThatWait(false)).toBe(2);
  });
});

/** A session that is given up without anybody making sure that the server is done with it. */
function withoutAbandon(session: Session): Session {
  return new Proxy(session, {
    get: (target, name) => (name === "abandon" ? () => Promise.resolve() : Reflect.get(target, name)),
  });
}
