/**
 * Rule: claim-token: delivery_count goes down too, so a table without lock_version has nothing that
 * tells a claim from an earlier one with the same number.
 */
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { createLayout } from "../../src/databases/sql/layouts.ts";
import { useRuleBench } from "./rule-bench.ts";

const bench = useRuleBench("sqlite");

/** What the relay asks of the store when the answer of its first settle is lost. */
async function afterLostSettle(layout: ReturnType<typeof createLayout>): Promise<string[]> {
  const { database, clock } = bench;
  await database.insert([{ key: "1" }]);
  const calls: string[] = [];
  const { relay } = bench.relay({
    relay: { layout },
    store: (store) => ({
      ...store,
      async settle(request) {
        calls.push("settle");
        if (calls.length === 1) throw new Error("the answer was lost");
        return await store.settle(request);
      },
      async abandonSessions() {
        calls.push("abandon");
        await store.abandonSessions();
      },
    }),
  });
  let ended = false;
  const tick = relay.tick().finally(() => {
    ended = true;
  });
  // The tick waits for its settle, which waits on the clock before it is tried again.
  while (!ended) {
    await clock.advance(50);
    await setImmediate();
  }
  await tick;
  return calls;
}

it("with delivery_count alone the old session is proven dead before a settle is written again", async () => {
  const layout = createLayout({ columns: { lockVersion: undefined } });
  expect(await afterLostSettle(layout)).toEqual(["settle", "abandon", "settle"]);
});

it("with lock_version a late copy finds another one, and nothing has to be proven", async () => {
  expect(await afterLostSettle(createLayout())).toEqual(["settle", "settle"]);
});
