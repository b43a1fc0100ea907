/**
 * Without the sending mark a settle runs beside another session's write of the lease rows: both
 * must take them in one order (databases/mysql/settle.ts).
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { defaultLayout } from "../../src/databases/sql/layouts.ts";
import type { ScannedMessage } from "../../src/relay/store.ts";
import { describeWithService } from "../services.ts";
import {
  lockWait,
  MYSQL_SERVICES,
  type MysqlFixture,
  mysqlFixture,
  scanAll,
  scannedTokens,
  takeAll,
} from "./mysql-setup.ts";

const LEASE =
  "SELECT shard FROM local_message_shard WHERE table_name = 'local_message' AND shard = ? FOR UPDATE NOWAIT";

describeWithService(MYSQL_SERVICES, "the order of locks", (service) => {
  let fixture: MysqlFixture;
  beforeAll(async () => {
    fixture = await mysqlFixture(service.name, defaultLayout);
    await fixture.enqueue(...Array.from("abcdefghijkl", (key) => ({ key })));
  });
  afterAll(() => fixture.drop());

  test("a settle without the mark that waits for a low shard does not hold a higher one", async () => {
    const store = await fixture.openStore();
    const fence = await takeAll(store, "relay");
    const [first, second] = descendingPair(await scanAll(store));
    const listing = await fixture.connect();
    await listing.query("BEGIN");
    await listing.query(LEASE, [second.shard]);
    const outcomes = scannedTokens([first, second]).map((row) => ({
      ...row,
      toState: "sent" as const,
      messageId: "m",
      retryDelta: 0 as const,
      deliveryDelta: 1 as const,
      nextRetryInMs: null,
      failReason: null,
    }));
    const settling = store.settle({ fence, outcomes, elapsedMs: 1, from: "pending" });
    await lockWait(fixture.plain, "UPDATE");
    // Whoever writes the lease rows in the order of their shards comes here next. In the order of
    // ids the settle would hold it: a deadlock.
    expect(await listing.query(LEASE, [first.shard])).toEqual([{ shard: first.shard }]);
    await listing.query("COMMIT");
    expect(await settling).toEqual([]);
  });
});

/** A message and a later one of a lower shard. */
function descendingPair(rows: readonly ScannedMessage[]): readonly [ScannedMessage, ScannedMessage] {
  for (const [index, first] of rows.entries()) {
    const second = rows.slice(index + 1).find(({ shard }) => shard < first.shard);
    if (second !== undefined) return [first, second];
  }
  throw new Error("the shards of the messages ascend with their ids; use other keys");
}
