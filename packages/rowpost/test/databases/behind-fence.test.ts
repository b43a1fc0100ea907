/**
 * A follower is set behind its head while the head settles on another connection: the head's lock
 * keeps it from standing behind nobody. With the lock taken out of the statement, the same
 * interleaving strands it.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database, Session } from "../../src/databases/database.ts";
import { createStatements as mysqlStatements } from "../../src/databases/mysql/statements.ts";
import { createStatements as postgresStatements } from "../../src/databases/postgres/statements.ts";
import { behindInstant } from "../../src/databases/sql/behind.ts";
import type { TableLayout } from "../../src/databases/sql/layout.ts";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import { migrate } from "../../src/databases/sql/migrate.ts";
import type { DialectStatements } from "../../src/databases/sql/statements.ts";
import type { Fence, RelayStore, ScannedMessage } from "../../src/relay/store.ts";
import { nextVersion } from "../../src/runtime/next-version.ts";
import { createLockWaitCounter } from "../contracts/lock-waits.ts";
import type { StoreHarness } from "../contracts/store-contract/harness.ts";
import { describeWithService } from "../services.ts";
import { sampleMessage, sampleOutcome } from "./statement-samples.ts";
import { mysqlHarness, postgresHarness } from "./store-harnesses.ts";

// InnoDB locks whatever an UPDATE reads beside its own table: here the statement is told what a
// plain read has seen before it.
describeWithService(["mariadb", "mysql9", "mysql8"], "set behind", ({ name }) => {
  interleavings(
    () => mysqlHarness(name, "mysql2", defaultLayout),
    mysqlStatements,
    (text, head) =>
      text.replace(
        /\(SELECT m[^()]+ FROM[\s\S]+?\) AS h /,
        `(SELECT ${head.id} AS id, '${head.orderingKey}' AS ordering_key) AS h `,
      ),
  );
});
describeWithService("postgres", "set behind", () => {
  interleavings(
    () => postgresHarness(defaultLayout),
    postgresStatements,
    (text) => text.replace(/FOR NO KEY UPDATE OF m SKIP LOCKED(?=\), free )/, ""),
  );
});

function interleavings(
  createHarness: () => Promise<StoreHarness>,
  create: (layout: TableLayout) => DialectStatements,
  withoutHeadLock: (text: string, head: ScannedMessage) => string,
): void {
  let harness: StoreHarness;
  let database: Database;
  let store: RelayStore;
  let setter: Session;
  let fence: Fence;
  let countWaiting: () => Promise<number>;
  let keys = 0;
  beforeAll(async () => {
    harness = await createHarness();
    database = await harness.createDatabase();
    await migrate(database, { layout: defaultLayout });
    store = database.relayStore({ layout: defaultLayout });
    await store.open({ sendingMark: "on", statementTimeoutMs: 20_000, lockWaitTimeoutMs: 10_000 });
    setter = await database.connect({ purpose: "relay" });
    const watcher = await database.connect({ purpose: "tool" });
    const counter = createLockWaitCounter(database.dialect, (text) => watcher.run({ name: "waits", text, params: [] }));
    if (counter === undefined) throw new Error("this engine has no locks to wait for");
    countWaiting = counter;
    const beat = { owner: "me", label: "me", leaseMs: 60_000, instanceTimeoutMs: 60_000, held: [] };
    const { leases } = await store.leases.heartbeat(beat);
    const { acquired } = await store.leases.acquire({ owner: "me", leaseMs: 60_000, observed: leases });
    fence = { owner: "me", epochs: leases.map(({ shard }) => acquired.find((each) => each.shard === shard)?.epoch) };
  });
  afterAll(async () => {
    await setter.close();
    await store.close();
    await database.close();
    await harness.close?.();
  });

  /**
   * The head settles after the statement has looked at it and before it has committed; its relay
   * then brings back whom it finds. Resolves with what came of it.
   */
  async function settleMeanwhile(change: (text: string, head: ScannedMessage) => string) {
    keys += 1;
    const orderingKey = `key-${keys}`;
    const writer = database.messageWriter({ layout: defaultLayout });
    const messages = ["head", "follower"].map((key) => sampleMessage({ key: `${key}-${keys}`, orderingKey }));
    await database.transaction((tx) => writer.insert(tx, messages, { duplicates: "throw" }));
    const scan = { shards: undefined, afterId: "0", immediateLimit: 10, dueLimit: 0, bodyLimit: 1_000 };
    const [head, follower] = (await store.scan(scan)).filter((row) => row.orderingKey === orderingKey);
    if (head === undefined || follower === undefined) throw new Error("both messages wait");
    await store.claim({ fence, rows: [head] });
    const claimed = { ...head, deliveryCount: 1, lockVersion: nextVersion(head.lockVersion) };

    const row = { ...follower, headId: head.id, instant: behindInstant(head.id) ?? "" };
    const { text, ...rest } = create(defaultLayout).housekeeping.setBehind({ fence, rows: [row] });
    const statement = { ...rest, text: change(text, head) };
    let settled = false;
    let settling: Promise<number> | undefined;
    let waited = false;
    await setter.transaction(async (tx) => {
      expect((await tx.run(statement)).affected).toBe(1);
      settling = (async () => {
        const left = await store.settle({ fence, outcomes: [sampleOutcome(claimed)], elapsedMs: 1, from: "sending" });
        expect(left).toEqual([]);
        const back = await store.housekeeping.bringBack({ headIds: [head.id], limit: 10 });
        settled = true;
        return back;
      })();
      settling.catch(() => undefined);
      while (!settled && !waited) waited = (await countWaiting()) > 0;
    });
    const back = await settling;
    const heads = await store.housekeeping.headsOfBehind({ afterHeadId: "0", limit: 10, failedBlocks: true });
    return { waited, back, stranded: heads.filter(({ headId, stands }) => headId === head.id && !stands).length };
  }

  test("a settle of the head waits, and finds the follower", async () => {
    expect(await settleMeanwhile((text) => text)).toEqual({ waited: true, back: 1, stranded: 0 });
  });

  test("without the head's lock it does not wait, and leaves the follower behind nobody", async () => {
    const unlocked = (text: string, head: ScannedMessage): string => {
      const changed = withoutHeadLock(text, head);
      expect(changed).not.toBe(text);
      return changed;
    };
    expect(await settleMeanwhile(unlocked)).toEqual({ waited: false, back: 0, stranded: 1 });
  });
}
