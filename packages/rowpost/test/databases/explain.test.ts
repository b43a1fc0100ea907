/**
 * What the operations cost on a table of 200,000 rows of which 99 % are finished: how many
 * statements each runs, how many rows the hot ones read, and how their plans look. The plans of
 * every statement, analyzed or not, are in the dialects' own files; here the same questions are put
 * to all servers alike, and to what the server counted while the statement ran.
 *
 * Asserted of a plan, for the message table:
 * - MySQL, MariaDB: no step of type ALL or index (a walk over the whole table or index), no "Using
 *   filesort", no "Using temporary".
 * - PostgreSQL: no Seq Scan, no Index Scan of a whole index without a condition unless the index
 *   holds only the rows meant, no Sort above a scan of it that reads more than the statement's
 *   limit.
 * - SQLite: no SCAN without an index, no "USE TEMP B-TREE FOR ORDER BY".
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database, DialectName, Session } from "../../src/databases/database.ts";
import { createStatements as mysqlStatements } from "../../src/databases/mysql/statements.ts";
import { createStatements as postgresStatements } from "../../src/databases/postgres/statements.ts";
import { behindInstant } from "../../src/databases/sql/behind.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import { pickAll } from "../../src/databases/sql/past-refused.ts";
import { createRelayStore } from "../../src/databases/sql/relay-store.ts";
import type { DialectStatements } from "../../src/databases/sql/statements.ts";
import { createStatements as sqliteStatements } from "../../src/databases/sqlite/statements.ts";
import { claimedToken } from "../../src/relay/row-token.ts";
import type { RelayStore, RowToken } from "../../src/relay/store.ts";
import type { Statement } from "../../src/transactions/executor.ts";
import type { StoreHarness } from "../contracts/store-contract/harness.ts";
import { describeWithService } from "../services.ts";
import { analyze, faults, numbersTo, openMigrated, rowsRead } from "./plans.ts";
import { OWNER, sampleFence, sampleMessage, sampleOutcome } from "./statement-samples.ts";
import { mysqlHarness, postgresHarness, sqliteHarness } from "./store-harnesses.ts";

/** Rows of the table; the last 2,000 are not finished. */
const ROWS = 200_000;
const BATCH = 100;

describeWithService(["mariadb", "mysql9", "mysql8"], "costs", ({ name }) => {
  costs(() => mysqlHarness(name, "mysql2", defaultLayout), mysqlStatements);
});
describeWithService("postgres", "costs", () => {
  costs(() => postgresHarness(defaultLayout), postgresStatements);
});
describe("costs on sqlite", () => {
  // SQLite does not count the rows that it reads.
  costs(() => Promise.resolve(sqliteHarness("file", defaultLayout)), sqliteStatements, { countsReads: false });
});

function costs(
  createHarness: () => Promise<StoreHarness>,
  create: (layout: TableLayout) => DialectStatements,
  { countsReads = true } = {},
): void {
  let database: Database;
  let session: Session;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ close, database, session } = await openMigrated(await createHarness()));
    await fill(database.dialect, session);
    // The fences of the samples hold, or the fenced statements would stop before they look at a
    // message.
    await session.run(create(defaultLayout).leases.ensureShards());
    const own = `UPDATE local_message_shard SET owner = '${OWNER}', epoch = 1`;
    await session.run({ name: "own", text: own, params: [] });
  });
  afterAll(() => close());

  test("no plan of a hot statement walks the message table or sorts it", async () => {
    for (const [name, { rare, sortsResult = false, statement }] of Object.entries(hot(create(defaultLayout)))) {
      if (rare === true) continue;
      const found = await faults(database.dialect, session, statement);
      const meant = found.filter((fault) => !(sortsResult && /filesort|TEMP B-TREE FOR ORDER BY/.test(fault)));
      expect(meant, `${name}: ${statement.text}`).toEqual([]);
    }
  });

  const readsNoMoreThanItMeans = async (): Promise<void> => {
    await analyze(database.dialect, session);
    const read: Record<string, string> = {};
    for (const [name, { atMost, statement }] of Object.entries(hot(create(defaultLayout)))) {
      const rows = await rowsRead(database.dialect, session, statement);
      if (rows > atMost) read[name] = `${rows} rows, at most ${atMost}`;
    }
    expect(read).toEqual({});
  };
  if (countsReads) test("hot statements read no more rows than they mean", readsNoMoreThanItMeans);

  test("each operation keeps to its number of statements", async () => {
    const counted = countStatements(database);
    const layout = database.defaultLayout;
    const store = createRelayStore({
      layout,
      statements: create(layout),
      connect: counted.connect,
      isRowRefused: () => false,
      sharedSession: database.dialect === "sqlite",
    });
    try {
      await store.open({ sendingMark: "on", statementTimeoutMs: 20_000, lockWaitTimeoutMs: 3_000 });
      expect(await budgets(store, counted)).toEqual([]);
    } finally {
      await store.close();
    }
  });
}

/**
 * A statement, and the most rows that the server may read for it: of the message table, of its
 * indexes, and of what is handed in.
 */
interface Hot {
  readonly statement: Statement;
  readonly atMost: number;
  /** The rows that come out are sorted, and no others: their number is bounded by `atMost`. */
  readonly sortsResult?: boolean;
  /** Not for every batch: only its rows are counted. */
  readonly rare?: boolean;
}

/**
 * A row of a batch is read by its id, and in MySQL's counters also as a row of the JSON parameter,
 * of the lease and once more to be written: 8 each, and a little for the statement itself.
 */
const PER_BATCH_ROW = 8;
const OVERHEAD = 100;

function hot(statements: DialectStatements): Readonly<Record<string, Hot>> {
  const { enqueue, housekeeping, relay } = statements;
  const fence = sampleFence(statements.facts.shardCount);
  const rows = unfinishedTokens(statements.facts.shardCount);
  const batch = PER_BATCH_ROW * BATCH + OVERHEAD;
  const sent = rows.map((row) => sampleOutcome(row));
  const failed = rows.map((row) => sampleOutcome(row, { toState: "failed", retryDelta: 1, failReason: "x" }));
  const scan = {
    shards: undefined,
    afterId: "0",
    bodyLimit: Number.MAX_SAFE_INTEGER,
    immediateLimit: BATCH,
    dueLimit: BATCH,
  };
  const keys = rows.slice(0, 20).map(({ id }) => ({ orderingKey: `o${Number(id) % 1_000}`, upToId: String(ROWS) }));
  return {
    scan: { statement: relay.scan(scan), atMost: 4 * BATCH + OVERHEAD },
    "scan of some shards": { statement: relay.scan({ ...scan, shards: [0, 1] }), atMost: 4 * BATCH + OVERHEAD },
    "scan far on": { statement: relay.scan({ ...scan, afterId: String(ROWS - 500) }), atMost: 4 * BATCH + 2_000 },
    // 200 rows of each key in the table, of which one or two are unfinished.
    keyQueues: {
      statement: relay.keyQueues({ keys, failedBlocks: true }),
      atMost: 20 * 10 + OVERHEAD,
      sortsResult: true,
    },
    claim: { statement: relay.claim({ fence, rows }), atMost: batch },
    verifyClaim: { statement: relay.verifyClaim({ fence, rows }), atMost: batch },
    settleSent: {
      statement: relay.settleSent({ fence, outcomes: sent, elapsedMs: 5, from: "sending" }),
      atMost: batch,
    },
    deleteSent: { statement: relay.deleteSent({ fence, rows, from: "sending" }), atMost: batch },
    settleOther: {
      statement: relay.settleOther({ fence, outcomes: failed, elapsedMs: 5, from: "sending" }),
      atMost: batch,
    },
    // Locked first, then joined.
    recover: { statement: housekeeping.recoverRows({ fence, rows }), atMost: batch + 3 * BATCH },
    park: { statement: housekeeping.park({ fence, rows, parkMs: 5 }), atMost: batch },
    // The heads and the followers are locked first.
    setBehind: {
      statement: housekeeping.setBehind({
        fence,
        rows: rows.slice(1).map((row) => ({ ...row, headId: rows[0]?.id ?? "", instant: "3000-01-01 00:00:00.100" })),
      }),
      atMost: batch + 4 * BATCH,
    },
    bringBack: {
      statement: housekeeping.bringBack({
        instants: rows.map((_row, index) => behindInstant(String(index)) ?? ""),
        ...pickAll(10),
      }),
      atMost: 2 * BATCH + OVERHEAD,
    },
    nextBehind: { statement: housekeeping.nextBehind("3000-01-01 00:00:00.000"), atMost: 10 },
    readBodies: { statement: relay.readBodies(rows.map(({ id }) => id)), atMost: 2 * BATCH },
    scanTopics: {
      statement: relay.scanTopics({
        ...scan,
        topics: ["t1", "t2", "t3"].map((topic) => ({ topic, afterId: "0", immediateLimit: BATCH, dueLimit: BATCH })),
      }),
      atMost: 3 * 8 * BATCH,
    },
    nextTopics: { statement: relay.nextTopics(["", "t1", "t2"]), atMost: 30 },
    // The ends of three walks, in one order.
    listTimed: { statement: housekeeping.listTimed(BATCH), atMost: 6 * BATCH + OVERHEAD, sortsResult: true },
    // Rows that are being sent are few, and SQLite sorts them.
    listSending: {
      statement: housekeeping.listSending({ shards: undefined, limit: BATCH }),
      atMost: 4 * BATCH + OVERHEAD,
      sortsResult: true,
    },
    // Done by a person after an outage: of the unfinished rows all may be of this topic.
    resetBackoff: {
      statement: housekeeping.resetBackoff({ topic: "t1", limit: BATCH, stepMs: 1, ...pickAll(BATCH) }),
      atMost: 6_000,
      rare: true,
    },
    // Done once after the clock was set back: all that is delayed is looked at.
    shortenWaits: {
      statement: housekeeping.shortenWaits({ beyondMs: 600_000, stepMs: 1, ...pickAll(BATCH) }),
      atMost: 6_000,
      rare: true,
    },
    lockFinished: {
      statement: housekeeping.lockFinished({ state: "sent", olderThanMs: 0, afterId: "0", limit: BATCH }),
      atMost: 6 * BATCH + OVERHEAD,
    },
    "lockFinished, none old enough": {
      statement: housekeeping.lockFinished({ state: "sent", olderThanMs: 86_400_000, afterId: "0", limit: BATCH }),
      atMost: 6 * BATCH + OVERHEAD,
    },
    "lockFinished, none there": {
      statement: housekeeping.lockFinished({ state: "consumed", olderThanMs: 0, afterId: "0", limit: BATCH }),
      atMost: OVERHEAD,
    },
    passFinished: {
      statement: housekeeping.passFinished({ state: "sent", afterId: "0", rows: BATCH }),
      atMost: BATCH + OVERHEAD,
    },
    listStrays: { statement: housekeeping.listStrays(BATCH), atMost: OVERHEAD },
    findIdentities: {
      statement: enqueue.findIdentities(rows.map(({ id }) => sampleMessage({ key: `k${id}` }))),
      atMost: batch,
    },
    // Unfinished rows are counted one by one, and the temporary rows of the groups.
    gauges: { statement: housekeeping.gauges(10_000), atMost: 12_000 },
  };
}

/** Every 20th of the unfinished rows. */
function unfinishedTokens(shards: number): RowToken[] {
  return Array.from({ length: BATCH }, (_, index) => ({
    id: String(ROWS - 1_999 + index * 20),
    shard: index % shards,
    deliveryCount: 0,
    lockVersion: "0",
    identityHash: "0",
  }));
}

/**
 * 198,000 rows that were sent, then 2,000 that wait, are due, delayed, being sent, failed or
 * suspended. ids from 1.
 */
async function fill(dialect: DialectName, session: Session): Promise<void> {
  const concat = (left: string, right: string): string =>
    dialect === "mysql" ? `CONCAT('${left}', ${right})` : `'${left}' || ${right}`;
  const hours = {
    mysql: "UTC_TIMESTAMP(3) + INTERVAL (n % 7 - 3) HOUR",
    postgres: "now() + (n % 7 - 3) * interval '1 hour'",
    sqlite: "strftime('%Y-%m-%d %H:%M:%f', 'now', (n % 7 - 3) || ' hours')",
  }[dialect];
  const finished = `n <= ${ROWS - 2_000}`;
  const unfinished = "CASE n % 10 WHEN 1 THEN 1 WHEN 2 THEN 3 WHEN 3 THEN 5 ELSE 0 END";
  const text = `INSERT INTO local_message (message_type, message_key, topic, message_body, state, ordering_key, next_retry_at, sent_at)
SELECT 'order.created', ${concat("k", "n")}, ${concat("t", "n % 20")}, '{}', CASE WHEN ${finished} THEN 2 ELSE ${unfinished} END,
  ${concat("o", "n % 1000")}, CASE WHEN ${finished} OR n % 4 <> 0 THEN NULL ELSE ${hours} END, CASE WHEN ${finished} THEN ${hours} END
FROM ${numbersTo(dialect, ROWS)}${dialect === "mysql" ? " ORDER BY n" : ""}`;
  await session.run({ name: "fill", text, params: [] });
}

interface CountingConnections {
  readonly connect: Database["connect"];
  /** Names of the statements since the last call. */
  take(): string[];
}

/** Connections that write down what runs on them. */
function countStatements(database: Database): CountingConnections {
  let names: string[] = [];
  return {
    async connect(options) {
      const session = await database.connect(options);
      const noted = <Result>(
        statement: Statement,
        work: (statement: Statement) => Promise<Result>,
      ): Promise<Result> => {
        names.push(statement.name);
        return work(statement);
      };
      return {
        server: session.server,
        lock: session.lock,
        freeLocks: (locks) => session.freeLocks(locks),
        get dead() {
          return session.dead;
        },
        run: (statement) => noted(statement, (each) => session.run(each)),
        transaction: (work) =>
          session.transaction(async (tx) => {
            names.push("BEGIN");
            const result = await work({ kind: tx.kind, run: (statement) => noted(statement, (each) => tx.run(each)) });
            names.push("COMMIT");
            return result;
          }),
        abandon: () => session.abandon(),
        close: () => session.close(),
      };
    },
    take() {
      const taken = names;
      names = [];
      return taken;
    },
  };
}

/** Runs each operation and returns those that took more statements than they may. */
async function budgets(store: RelayStore, counted: CountingConnections): Promise<string[]> {
  const { housekeeping, leases } = store;
  const over: string[] = [];
  async function within<T>(name: string, most: number, work: () => Promise<T>): Promise<T> {
    counted.take();
    const result = await work();
    const names = counted.take();
    if (names.length > most) over.push(`${name}: ${names.length} statements, at most ${most}: ${names.join(", ")}`);
    return result;
  }
  const owner = "budget";
  const beat = { owner, label: "h:1", leaseMs: 60_000, instanceTimeoutMs: 60_000 };
  const view = await within("first heartbeat", 4, () => leases.heartbeat({ ...beat, held: [] }));
  const { acquired } = await within("acquire", 7, () =>
    leases.acquire({ owner, leaseMs: 60_000, observed: view.leases }),
  );
  await within("heartbeat", 5, () => leases.heartbeat({ ...beat, held: acquired }));
  const epochs = view.leases.map(({ shard }) => acquired.find((lease) => lease.shard === shard)?.epoch);
  const fence = { owner, epochs };
  const scan = {
    shards: undefined,
    afterId: "0",
    bodyLimit: Number.MAX_SAFE_INTEGER,
    immediateLimit: BATCH,
    dueLimit: 10,
  };
  const rows = await within("scan", 1, () => store.scan(scan));
  expect(rows.length).toBeGreaterThan(BATCH);
  const keys = [{ orderingKey: "o1", upToId: String(ROWS) }];
  await within("keyQueues", 1, () => store.keyQueues({ keys, failedBlocks: true }));
  expect(await within("claim", 1, () => store.claim({ fence, rows }))).toBe(rows.length);
  const claimed = rows.map((row) => claimedToken(row, "on"));
  await within("verifyClaim", 1, () => store.verifyClaim({ fence, rows: claimed }));
  const settling = { fence, elapsedMs: 5, from: "sending" } as const;
  const sent = claimed.slice(0, 50).map((row) => sampleOutcome(row));
  const mixed = claimed
    .slice(50)
    .map((row, index) =>
      sampleOutcome(row, index % 2 === 0 ? {} : { toState: "failed", retryDelta: 1, failReason: "x" }),
    );
  expect(await within("settle sent", 1, () => store.settle({ ...settling, outcomes: sent }))).toEqual([]);
  expect(await within("settle mixed", 2, () => store.settle({ ...settling, outcomes: mixed }))).toEqual([]);
  await within("settle once more", 3, () => store.settle({ ...settling, outcomes: mixed }));
  const next = await store.scan(scan);
  const [front] = next;
  await within("readBodies", 1, () => store.readBodies(next.map(({ id }) => id)));
  const topics = await within("waitingTopics", 20, () => store.waitingTopics({ known: ["t1"], limit: 100 }));
  await within("waitingTopics, all known", 1, () => store.waitingTopics({ known: ["t1", ...topics], limit: 100 }));
  const behind = next.slice(1).map((row) => ({ ...row, headId: front?.id ?? "0" }));
  await within("setBehind", 1, () => housekeeping.setBehind({ fence, rows: behind }));
  await within("headsOfBehind", 3, () =>
    housekeeping.headsOfBehind({ afterHeadId: "0", limit: 10, failedBlocks: true }),
  );
  await within("bringBack", 1, () => housekeeping.bringBack({ headIds: ["1", "2"], limit: 10 }));
  await within("listInFlight", 1, () => store.listInFlight({ fence, idsByShard: [{ shard: 0, ids: ["1"] }] }));
  await within("listSending", 1, () => housekeeping.listSending({ shards: undefined, limit: 10 }));
  await within("recover", 1, () => housekeeping.recover({ fence, rows: claimed }));
  await within("listTimed", 1, () => housekeeping.listTimed({ limit: 10 }));
  await within("failUnknownStates", 1, () => housekeeping.failUnknownStates({ limit: 10 }));
  await within("park", 1, () => housekeeping.park({ fence, rows: next.slice(0, 10), parkMs: 5 }));
  const broken = next.slice(10, 20).map((row) => ({ ...row, failReason: "x" }));
  await within("failPending", 1, () => housekeeping.failPending({ fence, rows: broken, nextRetryInMs: null }));
  await within("resetBackoff", 1, () => housekeeping.resetBackoff({ topic: "t1", limit: 10, stepMs: 1 }));
  await within("gauges", 1, () => housekeeping.gauges());
  await within("removeFinished", 14, () =>
    housekeeping.removeFinished({ mode: "archive", states: ["sent", "consumed"], olderThanMs: 0, limit: 10 }),
  );
  await within("purgeArchive", 1, () => housekeeping.purgeArchive({ olderThanMs: 0, limit: 10 }));
  await within("release", 1, () => leases.release({ owner, shards: acquired }));
  await within("leave", 1, () => leases.leave(owner));
  await within("what has nothing to do", 0, async () => {
    await store.claim({ fence, rows: [] });
    await store.settle({ ...settling, outcomes: [] });
    await store.keyQueues({ keys: [], failedBlocks: true });
    await store.verifyClaim({ fence, rows: [] });
    await store.listInFlight({ fence, idsByShard: [] });
    await housekeeping.recover({ fence, rows: [] });
    await housekeeping.park({ fence, rows: [], parkMs: 5 });
    await housekeeping.setBehind({ fence, rows: [] });
    await housekeeping.bringBack({ headIds: [], limit: 10 });
    await store.readBodies([]);
    await housekeeping.failPending({ fence, rows: [], nextRetryInMs: null });
    await housekeeping.applyTimed({ decisions: [] });
    await housekeeping.listSending({ shards: [], limit: 10 });
    await leases.release({ owner, shards: [] });
    await leases.acquire({ owner, leaseMs: 1, observed: [] });
  });
  return over;
}
