/**
 * The head of a key changes between the scan and the claim: a claim leaves it out, and its
 * followers must not overtake it (rule: key-order).
 */
import { expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { createRelayDatabase } from "../relay/bench-database.ts";

it("the followers of a head that changed after its scan are given back, uncounted, and go behind it", async () => {
  const database = await createRelayDatabase("sqlite");
  const broker = memory();
  let changed = false;
  const relay = createRelay({
    database: database.connect(),
    broker,
    async onFaultPoint(point) {
      if (changed || point !== "beforeClaim") return;
      changed = true;
      await database.sql("UPDATE local_message SET lock_version = lock_version + 1 WHERE message_key = '1'");
    },
  });
  await database.insert(["1", "2", "3"].map((key) => ({ key, orderingKey: "k" })));
  await relay.tick();
  expect(broker.published()).toEqual([]);
  await relay.tick();
  expect(broker.published().map(({ key, attempt }) => [key, attempt])).toEqual([
    ["1", 1],
    ["2", 1],
    ["3", 1],
  ]);
  await relay.stop();
  await database.drop();
});
