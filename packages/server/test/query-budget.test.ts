/**
 * What the console's reads cost on a table of 200,000 messages: the rows that the server examines,
 * and its plans. Then filters at random, while rows come and change: each answer is the page that
 * is meant, and no statement reads more than its number.
 */
import fc from "fast-check";
import { createOutbox, type Database, migrate, type Outbox } from "rowpost";
import type { Session } from "rowpost/admin";
import { mysql } from "rowpost/mysql";
import { postgres } from "rowpost/postgres";
import { sqlite } from "rowpost/sqlite";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createTestDatabase, describeWithService } from "../../rowpost/test/services.ts";
import type { ROUTES, RouteName } from "../src/http/routes.ts";
import { temporaryFile } from "./command.ts";
import { type ConsoleBench, openConsole, type Sent } from "./console.ts";
import { ARCHIVED, AUDITED, CREATED_FROM, fillTable, type KnownRow, knownRow, ROWS } from "./filled-table.ts";
import { type Cost, type CostLog, countedConnect } from "./read-costs.ts";

const log = vi.hoisted((): CostLog => ({ costs: [], plans: false }));

// The real connections of the real databases; what runs on them is measured there.
vi.mock(import("../../rowpost/src/databases/sql/sql-database.ts"), async (original) => {
  const { createSqlDatabase } = await original();
  return {
    createSqlDatabase: (parts) => createSqlDatabase({ ...parts, connect: countedConnect(parts.connect, log) }),
  };
});

type Table = typeof ROUTES;
/** Routes that read, without those of a queue's topic and of one operation, which are not there. */
type ReadRoute = Exclude<
  { [Name in RouteName]: Table[Name]["method"] extends "GET" ? Name : never }[RouteName],
  `queue${string}` | "operation" | "session" | "meta"
>;

type Place = "live" | "archive";

/** The highest id of the table. */
const LAST = ARCHIVED + ROWS;
/** Bounded counts and samples end here: of each state, and in MySQL once more in the count. */
const COUNTS = 30_000;
/** First step along the primary key: its end is looked for, then its rows are. */
const FIRST_STEP = 2 * 2_000;
const PAGE = 50;
/** Ids of a page are found, and its rows are read: in MySQL through a table of the ids. */
const OF_A_PAGE = 6 * PAGE;

interface Budget {
  readonly sent?: Sent;
  readonly rows: number;
  /** Default: 6. */
  readonly statements?: number;
}

const at = (id: number) => ({ params: { id: String(id) } });
const query = (given: Readonly<Record<string, string>>): { readonly sent: Sent } => ({ sent: { query: given } });

/** A route that reads and has no line does not compile. */
const BUDGETS: Readonly<Record<ReadRoute, readonly Budget[]>> = {
  // One look for all four, and for all viewers.
  pulse: [{ rows: COUNTS, statements: 8 }],
  overview: [{ rows: 0, statements: 0 }],
  topics: [{ rows: 0, statements: 0 }],
  relays: [{ rows: 0, statements: 0 }],
  messages: [
    { rows: FIRST_STEP + OF_A_PAGE },
    { ...query({ limit: "200" }), rows: FIRST_STEP + 4 * OF_A_PAGE },
    // A first step, and where it fills no page those of the state are counted and sorted.
    { ...query({ state: "failed" }), rows: FIRST_STEP + 3_000 },
    { ...query({ state: "pending" }), rows: FIRST_STEP + OF_A_PAGE },
    { ...query({ state: "failed", topic: "t2" }), rows: 3_000 },
    // There are too many to go by the state: its count ends at 10,000, then one step.
    { ...query({ state: "pending", topic: "t5" }), rows: 20_001 + FIRST_STEP + OF_A_PAGE },
    // None is so old: after the first step those of the state are sorted, not 138,000 walked past.
    { ...query({ state: "pending", before: hour(200) }), rows: 90_000, statements: 12 },
    { ...query({ topic: "t2" }), rows: FIRST_STEP + OF_A_PAGE },
    { ...query({ type: "order.paid" }), rows: FIRST_STEP + OF_A_PAGE },
    // The types one by one, then the key of each, in the table and in the archive.
    { ...query({ key: "k-4711", in: "live,archive" }), rows: 50, statements: 12 },
    { ...query({ key: "k-100001", type: "stock.moved" }), rows: 10 },
    { ...query({ keyPrefix: "k-10001" }), rows: 200, statements: 7 },
    // Half of the table begins so, none of the newest: two steps.
    { ...query({ keyPrefix: "k-1" }), rows: 30_100 + FIRST_STEP + 2 * 20_001 + OF_A_PAGE, statements: 10 },
    { ...query({ orderingKey: "o17", state: "pending,sending,failed,suspended" }), rows: 100 },
    { ...query({ orderingKey: "nobody", state: "pending" }), rows: 10 },
    // 64 looks all over the table, 16 at each step towards the ends, and the hour with its edges.
    { ...query({ after: hour(10), before: hour(11) }), rows: 1_000, statements: 10 },
    { ...query({ in: "archive" }), rows: FIRST_STEP + OF_A_PAGE },
  ],
  lookup: [
    { ...query({ word: "150000" }), rows: 50, statements: 14 },
    { ...query({ key: "nobody" }), rows: 50, statements: 12 },
    { ...query({ type: "order.paid", key: "nobody" }), rows: 10 },
  ],
  message: [
    // Entries of the audit: any may have been about this message too.
    { sent: at(LAST), rows: AUDITED + 100, statements: 10 },
    { sent: at(ARCHIVED + 1), rows: AUDITED + 100, statements: 10 },
  ],
  keyQueue: [{ sent: at(LAST), rows: 100 }],
  body: [{ sent: at(LAST), rows: 10 }],
  rawBody: [{ sent: at(LAST), rows: 10 }],
  // In memory.
  operations: [{ rows: 0, statements: 0 }],
  // Failed ones are few here; 10,000 are looked at.
  failures: [{ rows: FIRST_STEP + 6_000 }],
  unconfirmed: [{ rows: 6_000 }],
  // Rules, silences and channels; nobody has been told of anything here.
  alerts: [{ rows: 100 }],
  // Examines on purpose: all that the overview looks at, once more.
  doctor: [{ rows: COUNTS, statements: 12 }],
  audit: [{ rows: 120 }, { ...query({ author: "user-7" }), rows: 2_000 }],
};

function hour(of: number): string {
  return new Date(CREATED_FROM + 10 * 86_400_000 + of * 3_600_000).toISOString();
}

/** Of one statement of a search, whatever the filter is. */
const STATEMENTS: Readonly<Record<string, (limit: number) => number>> = {
  chunkEnd: () => 20_001,
  // The longest step; in MySQL what was found is read once more.
  find: (limit) => 20_001 + 6 * limit,
  countKeys: () => 30_100,
  countStates: () => 6 * 20_001,
  // PostgreSQL walks an archive as small as this one for a page of many.
  readMessages: (limit) => (limit > 100 ? ARCHIVED : 2 * limit + 10),
  nextType: () => 2,
  createdFrom: () => 130,
  createdOfLastArchived: () => 70,
  idBounds: () => 4,
};

/** Statements that may walk an index from its end, because they stop after so many rows. */
const WALKS = ["chunkEnd", "countStates", "idBounds"];
/** Statements that may sort: what comes out is a page, or what a rare state or a key has. */
const SORTS = ["find", "keyQueues", "oldestDue", "readChanges", "countUnconfirmed", "lastConsumers", "listSilences"];
/** The first look of each connection. */
const BESIDE = ["columns"];

const KNOWN: readonly KnownRow[] = Array.from({ length: LAST }, (_, index) => knownRow(index + 1));

describeWithService(["mariadb", "postgres"], "reads of the console", ({ name }) => {
  cases(async () => {
    const server = await createTestDatabase(name);
    const { url } = server;
    return { database: name === "postgres" ? postgres({ url }) : mysql({ url }), drop: () => server.drop() };
  });
});
describe("reads of the console on sqlite", () => {
  cases(async () => {
    const place = await temporaryFile();
    return { database: sqlite({ file: place.file }), drop: () => place.remove() };
  });
});

function cases(create: () => Promise<{ readonly database: Database; drop(): Promise<void> }>): void {
  let bench: ConsoleBench;
  let session: Session;
  let outbox: Outbox;
  let drop: () => Promise<void>;
  beforeAll(async () => {
    const { database, ...made } = await create();
    drop = () => made.drop();
    await migrate(database, { layout: database.defaultLayout });
    session = await database.connect({ purpose: "relay" });
    await fillTable(database.dialect, session);
    outbox = createOutbox({ database });
    bench = await openConsole(database);
  });
  afterAll(async () => {
    await session.close();
    await bench.close();
    await drop();
  });

  async function spent(name: RouteName, sent: Sent = {}) {
    log.costs.length = 0;
    const answer = await bench.ask(name, { token: bench.tokens.admin, ...sent });
    expect([sent, answer.status, answer.json["detail"]]).toEqual([sent, 200, undefined]);
    return { ...answer, costs: log.costs.filter((cost) => !BESIDE.includes(cost.name)) };
  }

  test("each route keeps to its rows and statements, and no plan walks a table or sorts it", async () => {
    log.plans = true;
    const over: unknown[] = [];
    for (const [name, budgets] of Object.entries(BUDGETS) as [ReadRoute, readonly Budget[]][]) {
      for (const { rows, sent, statements = 6 } of budgets) {
        const { costs } = await spent(name, sent);
        const read = costs.reduce((sum, cost) => sum + (cost.rows ?? 0), 0);
        const bad = costs.flatMap(faultsOf);
        if (read > rows || costs.length > statements || bad.length > 0)
          over.push({ name, sent, read, rows, statements: costs.map((each) => `${each.name} ${each.rows}`), bad });
      }
    }
    expect(over).toEqual([]);
    log.plans = false;
  });

  test("whatever is looked for, pages make up what is meant, none twice, while rows come and change", async () => {
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(filters(), async (filter) => {
        runs += 1;
        const { limit } = filter;
        const pages: Page[] = [];
        let cursor: string | null = null;
        do {
          const { costs, json } = await spent("messages", { query: asQuery(filter, cursor) });
          expect(costs.flatMap((cost) => overspent(cost, limit))).toEqual([]);
          const page = json as unknown as Page;
          pages.push(page);
          expect(page.items.length).toBeLessThanOrEqual(limit);
          cursor = page.next;
          if (pages.length === 1 && cursor !== null) await change(String(runs));
        } while (cursor !== null && pages.length < 2);
        const found = pages.flatMap(({ items }) => items.map(({ archived, id }) => `${archived} ${id}`));
        expect(new Set(found).size).toBe(found.length);
        const stays = (id: string) => !moves(Number(id));
        const seen = pages.flatMap(({ items }) => items.filter(({ id }) => stays(id)).map(({ id }) => Number(id)));
        expect(seen).toEqual(meant(filter, pages));
      }),
      { numRuns: RUNS, seed: SEED },
    );
  }, 300_000);

  /** A new message, and some that wait fail, or wait again. */
  async function change(key: string): Promise<void> {
    await outbox.transaction((tx) =>
      outbox.enqueue(tx, { type: "order.paid", key: `k-new-${key}`, topic: "t2", body: 1 }),
    );
    const text = `UPDATE local_message SET state = 3 - state, lock_version = lock_version + 1 WHERE id IN (${[...MOVING].join(", ")})`;
    await session.run({ name: "move", text, params: [] });
  }
}

/** On each database: 500 filters on all. */
const RUNS = 170;
/** The same filters in each run; another number looks for others. */
const SEED = 4_711;

const MOVING = new Set(
  Array.from({ length: 20 }, (_, index) => LAST - index * 300).filter((id) => knownRow(id).state === "pending"),
);

/** Rows that are changed meanwhile, or have come: on a page or not, but never twice. */
function moves(id: number): boolean {
  return id > LAST || MOVING.has(id);
}

interface Page {
  readonly items: readonly { readonly id: string; readonly archived: boolean }[];
  readonly next: string | null;
  readonly searched: { readonly complete: boolean; readonly places: readonly Place[]; readonly downToId?: string };
}

interface Filter {
  readonly topic?: string | undefined;
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  readonly keyPrefix?: string | undefined;
  readonly orderingKey?: string | undefined;
  readonly states?: readonly string[] | undefined;
  readonly reason?: string | undefined;
  readonly afterMs?: number | undefined;
  readonly beforeMs?: number | undefined;
  readonly places: readonly Place[];
  readonly limit: number;
  readonly budgetMs: number;
}

function filters(): fc.Arbitrary<Filter> {
  const sometimes = <T>(of: fc.Arbitrary<T>, without = 2) =>
    fc.oneof({ weight: without, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: of });
  const id = fc.integer({ min: 1, max: LAST + 10 });
  const instant = id.map((near) => CREATED_FROM + near * 10_000);
  return fc.record({
    topic: sometimes(fc.constantFrom("t2", "t3", "t19", "nobody", "消息'\"%_")),
    type: sometimes(fc.constantFrom("order.created", "order.paid", "stock.moved", "nothing")),
    key: sometimes(
      id.map((of) => `k-${of}`),
      9,
    ),
    keyPrefix: sometimes(fc.constantFrom("k-", "k-1", "k-19", "k-2000", "k-new", "k%", "x"), 4),
    orderingKey: sometimes(fc.constantFrom("o17", "o4", "o503", "nobody")),
    states: sometimes(fc.subarray(["pending", "sending", "sent", "failed", "consumed", "suspended"], { minLength: 1 })),
    reason: sometimes(fc.constantFrom("host 3", "HTTP_503", "nothing", "%"), 5),
    afterMs: sometimes(instant),
    beforeMs: sometimes(instant),
    places: fc.constantFrom<readonly Place[]>(
      ["live"],
      ["live"],
      ["archive"],
      ["live", "archive"],
      ["archive", "live"],
    ),
    limit: fc.integer({ min: 1, max: 200 }),
    budgetMs: fc.integer({ min: 10, max: 60 }),
  });
}

function asQuery(filter: Filter, cursor: string | null): Readonly<Record<string, string>> {
  const { afterMs, beforeMs, budgetMs, limit, places, states, ...texts } = filter;
  const all = {
    ...texts,
    state: states?.join(","),
    in: places.join(","),
    limit: String(limit),
    budgetMs: String(budgetMs),
    after: afterMs === undefined ? undefined : new Date(afterMs).toISOString(),
    before: beforeMs === undefined ? undefined : new Date(beforeMs).toISOString(),
    cursor: cursor ?? undefined,
  };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** Ids that these pages have to hold, in order, as far down as the last one says that it came. */
function meant(filter: Filter, pages: readonly Page[]): number[] {
  const last = pages.at(-1)?.searched;
  const lastPlace = last?.places.at(-1);
  return filter.places.flatMap((place) => {
    if (last === undefined || lastPlace === undefined) return [];
    if (filter.places.indexOf(place) > filter.places.indexOf(lastPlace)) return [];
    const isCut = place === lastPlace && !last.complete && last.downToId !== undefined;
    const from = isCut ? Number(last.downToId) : 1;
    const [low, high] = place === "archive" ? [Math.max(1, from), ARCHIVED] : [Math.max(ARCHIVED + 1, from), LAST];
    const ids: number[] = [];
    for (let id = high; id >= low; id -= 1) {
      const row = KNOWN[id - 1];
      if (row !== undefined && !moves(id) && matches(filter, row)) ids.push(id);
    }
    return ids;
  });
}

function matches(filter: Filter, row: KnownRow): boolean {
  const { afterMs, beforeMs, key, keyPrefix, orderingKey, reason, states, topic, type } = filter;
  return (
    (topic === undefined || row.topic === topic) &&
    (type === undefined || row.type === type) &&
    (key === undefined || row.key === key) &&
    (keyPrefix === undefined || row.key.startsWith(keyPrefix)) &&
    (orderingKey === undefined || row.orderingKey === orderingKey) &&
    (states === undefined || states.includes(row.state)) &&
    (reason === undefined || row.reason?.includes(reason) === true) &&
    (afterMs === undefined || row.createdMs > afterMs) &&
    (beforeMs === undefined || row.createdMs < beforeMs)
  );
}

function overspent({ name, rows }: Cost, limit: number): readonly string[] {
  const most = STATEMENTS[name]?.(limit) ?? 0;
  return rows !== undefined && rows > most ? [`${name} read ${rows} rows, at most ${most}`] : [];
}

function faultsOf({ faults, name }: Cost): readonly string[] {
  const isSort = (fault: string) => /filesort|temporary|TEMP B-TREE|^Sort/.test(fault);
  const isMeant = (fault: string) => (isSort(fault) ? SORTS : WALKS).includes(name) && !/"type":"ALL"/.test(fault);
  return faults.filter((fault) => !isMeant(fault)).map((fault) => `${name}: ${fault}`);
}
