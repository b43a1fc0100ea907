/** What the doctor says of faults that are really made, on a database of the test's own. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Diagnosis } from "../../src/admin/doctor/diagnosis.ts";
import { examine } from "../../src/admin/doctor/examine.ts";
import { http } from "../../src/brokers/http.ts";
import { memory } from "../../src/brokers/memory.ts";
import type { Database } from "../../src/databases/database.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { createRelayDatabase, type RelayTestDatabase, type RelayTestService } from "../relay/bench-database.ts";

/** A test server may run so, to be quick. */
const SERVERS = /^(?:autovacuum|fsync|full_page_writes|innodb_\w+|max_allowed_packet) is \w+$/;

/** Defines the cases of one engine; `more` are its own. */
export function defineDoctorCases(
  service: RelayTestService,
  more?: (bench: () => RelayTestDatabase, found: () => Promise<readonly Diagnosis[]>) => void,
): void {
  let bench: RelayTestDatabase;
  let database: Database;

  beforeEach(async () => {
    bench = await createRelayDatabase(service);
    database = bench.connect();
  });
  afterEach(() => bench.drop());

  const found = async (): Promise<readonly Diagnosis[]> =>
    (await examine({ database })).found.filter(({ what }) => !SERVERS.test(what));
  const ids = async (): Promise<readonly string[]> => (await found()).map(({ id, severity }) => `${severity} ${id}`);

  it("finds nothing but that no relay runs, and nothing at all beside one; each look works here", async () => {
    expect(await ids()).toEqual(["warning D401"]);
    const relay = createRelay({ database: bench.connect(), broker: memory(), logger: "silent" });
    await relay.start();
    expect(await ids()).toEqual([]);
    await relay.stop();
  });

  it("tells relays that send to different places", async () => {
    const brokers = [memory(), http({ url: "http://127.0.0.1:9/hook" })];
    const relays = brokers.map((broker) => createRelay({ database: bench.connect(), broker, logger: "silent" }));
    for (const relay of relays) await relay.start();
    const elsewhere = (await found()).find(({ id }) => id === "D409");
    expect(elsewhere).toMatchObject({
      severity: "warning",
      what: expect.stringContaining("http at http://127.0.0.1:9/hook"),
    });
    for (const relay of relays) await relay.stop();
  });

  it("tells what waits for a relay, what has failed, and what is held for ever", async () => {
    await bench.insert([{ key: "1" }, { key: "2" }]);
    await bench.sql("UPDATE local_message SET state = 3 WHERE message_key = '2'");
    const admin = database.messageAdmin({ layout: database.defaultLayout });
    await admin.suspendScope({ scope: "topic", value: "stock", author: "ann", reason: "counting", endsInMs: null });
    await admin.close();
    expect(await ids()).toEqual(["error D401", "warning D404", "note D408"]);
    const [first, , last] = await found();
    expect(first?.what).toMatch(/^no relay is running, and message 1 is due for \d+ s$/);
    expect(last?.mend).toBe("rowpost resume --topic stock");
  });

  it("tells a table that is missing, and looks at nothing behind it", async () => {
    await bench.sql("DROP TABLE local_message_suspension");
    const all = await found();
    expect(all.map(({ id }) => id)).toEqual(["D102"]);
    expect(all[0]?.what).toContain("table local_message_suspension is missing");
  });

  it("tells migrations that are missing, and tables of a newer version", async () => {
    await bench.sql("DELETE FROM local_message_migration WHERE version = 7");
    expect((await found()).find(({ id }) => id === "D104")?.what).toMatch(/^migrations are missing: 7 \w/);
    await bench.sql("UPDATE local_message_migration SET version = 99 WHERE version = 6");
    expect((await found()).filter(({ id }) => id === "D104").map(({ what }) => what)).toEqual([
      expect.stringMatching(/^migrations are missing: 6 .*, 7 /),
      expect.stringContaining("have migration 99"),
    ]);
  });

  more?.(
    () => bench,
    () => found(),
  );
}
