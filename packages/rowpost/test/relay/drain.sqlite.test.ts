/** A drain that waits for next attempts ends when nothing is left to be sent, and not before. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { createRelay, type Database, memory } from "../../src/index.ts";
import { createRelayDatabase, type RelayTestDatabase } from "./bench-database.ts";

let database: RelayTestDatabase;
beforeEach(async () => {
  database = await createRelayDatabase("sqlite");
});
afterEach(() => database.drop());

/**
 * One message, whose first attempt is refused. Until `looks` looks at what is left have been taken
 * after that, it comes due right behind each scan.
 */
async function drain(looks: number) {
  let attempts = 0;
  let seen = 0;
  const broker = memory({
    outcome: () => {
      attempts += 1;
      if (attempts > 1) return undefined;
      return { status: "failed", scope: "message", code: "BUSY", reason: "busy", retriable: true };
    },
  });
  const plain = database.connect();
  const behindScans: Database = {
    ...plain,
    relayStore(options) {
      const store = plain.relayStore(options);
      const left = async () => {
        seen += 1;
        return await store.housekeeping.left();
      };
      return {
        ...store,
        scan: async (request) => (attempts > 0 && seen < looks ? [] : await store.scan(request)),
        housekeeping: { ...store.housekeeping, left },
      };
    },
  };
  await database.insert([{ key: "1" }]);
  const retry = { baseMs: 1, maxMs: 1 };
  return await createRelay({ database: behindScans, broker, logger: "silent", retry }).drain({ untilEmpty: true });
}

it("looks once more for what has come due behind a scan that found nothing", async () => {
  expect(await drain(2)).toMatchObject({ sent: 1, complete: true, left: { due: 0, backoff: 0 } });
});

it("ends when what is due is not found again and again, and tells of it", async () => {
  expect(await drain(1_000)).toMatchObject({ sent: 0, complete: true, left: { due: 1, backoff: 0 } });
});
