/**
 * pending -> sending: which rows a claim takes, what it writes, and how a claim of unknown outcome
 * is read back (rule: watched-sending).
 */

import assert from "node:assert/strict";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import type { RowToken } from "../../../../src/relay/store.ts";
import { nextVersion } from "../../../../src/runtime/next-version.ts";
import type { StoreContractCase } from "../case.ts";

export const claimCases: readonly StoreContractCase[] = [
  {
    name: "claim: marks the row and counts the delivery, and writes nothing else",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({
        retryCount: 2,
        failReason: "earlier",
        nextRetryInMs: -5_000,
        lastRetryInMs: -9_000,
      });
      const rows = [await context.token(row)];
      const before = await context.row(row);
      const columns = ["state", "deliveryCount", "lockVersion"] as const;
      const claimed = await context.assertChanges(row, columns, () => context.store.claim({ fence, rows }));
      assert.equal(claimed, 1);
      const { state, deliveryCount, lockVersion } = await context.row(row);
      assert.equal(state, "sending");
      if (context.layout.columns.deliveryCount !== undefined) assert.equal(deliveryCount, 1);
      if (context.layout.columns.lockVersion !== undefined) assert.equal(lockVersion, before.lockVersion + 1);
    },
  },
  {
    name: "claim: takes only rows that are pending",
    async run(context) {
      const { fence } = await context.acquire();
      const others = MESSAGE_STATES.filter((state) => state !== "pending");
      const rows = await context.putAll(others.map((state) => ({ state })));
      const tokens = await context.tokens(rows);
      const claimed = await context.assertUnchanged(rows, () => context.store.claim({ fence, rows: tokens }));
      assert.equal(claimed, 0);
    },
  },
  {
    name: "claim: a row in an unknown state is not claimed",
    needs: ["takesUnknownStates"],
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ rawState: unknownState(context.layout.states.pending) });
      const rows = [await context.token(row)];
      assert.equal(await context.assertUnchanged([row], () => context.store.claim({ fence, rows })), 0);
    },
  },
  {
    name: "claim: a row that has changed since the scan is not claimed, its neighbors are",
    needs: ["claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([{}, {}, {}]);
      const [before, changed, after] = rows;
      assert.ok(before && changed && after);
      const tokens = await context.tokens(rows);
      // Somebody retried it and it came back: pending as before, but another version.
      await context.table.edit(changed.id, { lockVersion: 7, deliveryCount: 3 });
      const claimed = await context.assertUnchanged([changed], () => context.store.claim({ fence, rows: tokens }));
      assert.equal(claimed, 2);
      for (const row of [before, after]) assert.equal((await context.row(row)).state, "sending");
    },
  },
  {
    name: "claim: a row that was put off since the scan is not claimed",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put();
      const rows = [await context.token(row)];
      assert.equal(await context.store.housekeeping.park({ fence, rows, parkMs: 60_000 }), 1);
      assert.equal(await context.assertUnchanged([row], () => context.store.claim({ fence, rows })), 0);
    },
  },
  {
    name: "claim: a row is claimed once by two that try at the same time",
    needs: ["instances"],
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll(Array.from({ length: 20 }, () => ({})));
      const tokens = await context.tokens(rows);
      const [one, two] = await Promise.all([
        context.store.claim({ fence, rows: tokens }),
        context.other.store.claim({ fence, rows: [...tokens].reverse() }),
      ]);
      assert.equal(one + two, rows.length, `${one} and ${two} claimed of ${rows.length}`);
      for (const row of rows) {
        const { deliveryCount, state } = await context.row(row);
        assert.equal(state, "sending");
        if (context.layout.columns.deliveryCount !== undefined) assert.equal(deliveryCount, 1);
      }
    },
  },
  {
    name: "claim: 500 rows in any order are claimed at once",
    async run(context) {
      const { fence } = await context.acquire();
      const count = 500;
      await context.enqueue(Array.from({ length: count }, (_, index) => context.message({ key: `many-${index}` })));
      const rows = shuffled(await context.scan());
      assert.equal(await context.store.claim({ fence, rows }), count);
      assert.deepEqual(await context.scan(), []);
    },
  },
  {
    name: "claim: looks at the row again after it has waited for somebody's lock",
    needs: ["rowLocks"],
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([{}, {}]);
      const [edited, free] = rows;
      assert.ok(edited && free);
      const tokens = await context.tokens(rows);
      const claimed = await context.whileLocked([edited], {
        start: () => context.store.claim({ fence, rows: tokens }),
        meanwhile: (edit) => edit(edited, { state: "suspended", lockVersion: 1 }),
      });
      assert.equal(claimed, 1);
      assert.equal((await context.row(edited)).state, "suspended");
      assert.equal((await context.row(free)).state, "sending");
    },
  },
  {
    name: "claim: rows that are gone are not counted",
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put();
      const rows = [await context.token(row), { ...(await context.token(row)), id: "999999999" }];
      assert.equal(await context.store.claim({ fence, rows }), 1);
    },
  },
  {
    name: "verifyClaim: names the rows that this claim has marked, and no others",
    needs: ["claimToken"],
    async run(context) {
      const { fence } = await context.acquire();
      const claimedAs = { deliveryCount: 1, lockVersion: 1 };
      const mine = await context.put({ state: "sending", ...claimedAs });
      const claimedAgain = await context.put({ state: "sending", deliveryCount: 2, lockVersion: 3 });
      const settled = await context.put({ state: "sent", ...claimedAs });
      const neverClaimed = await context.put({ ...claimedAs });
      const all = [mine, claimedAgain, settled, neverClaimed];
      const tokens = await context.tokens(all);
      const rows = tokens.map((token): RowToken => ({ ...token, deliveryCount: 1, lockVersion: "1" }));
      assert.deepEqual(await context.store.verifyClaim({ fence, rows }), [mine.id]);
    },
  },
  {
    name: "verifyClaim: says what a claim has really done",
    async run(context) {
      const { fence } = await context.acquire();
      const rows = await context.putAll([{}, {}]);
      const scanned = await context.tokens(rows);
      const claimed = scanned.map((row) => ({
        ...row,
        deliveryCount: row.deliveryCount + 1,
        lockVersion: nextVersion(row.lockVersion),
      }));
      assert.deepEqual(await context.store.verifyClaim({ fence, rows: claimed }), [], "before the claim");
      await context.store.claim({ fence, rows: scanned });
      const found = await context.store.verifyClaim({ fence, rows: claimed });
      assert.deepEqual([...found].sort(), rows.map(({ id }) => id).sort(), "after the claim");
    },
  },
  {
    name: "listInFlight: writes the lists of the shards that are held, and replaces them",
    needs: ["claimToken"],
    async run(context) {
      const { fence, held } = await context.acquire();
      const shard = held[0]?.shard ?? 0;
      const rows = await context.putAll([{ shard }, { shard }]);
      const [first, second] = rows;
      assert.ok(first && second);
      const list = (ids: string[]): Promise<number[]> =>
        context.store.listInFlight({ fence, idsByShard: [{ shard, ids }] });
      const versionsOf = async () => (await context.tokens(rows)).map(({ lockVersion }) => lockVersion);
      const [ofFirst = "0", ofSecond = "0"] = await versionsOf();
      assert.deepEqual(await list([first.id, second.id]), [shard]);
      assert.deepEqual(await list([second.id]), [shard]);
      // The next owner counts a delivery for what is listed, and only for that.
      await context.acquire();
      assert.deepEqual(
        await versionsOf(),
        [ofFirst, nextVersion(ofSecond)],
        "the new list is known, the replaced one is not",
      );
    },
  },
];

/** A value of the same kind that is no state. */
export function unknownState(known: number | string): number | string {
  return typeof known === "number" ? 99 : "nonsense";
}

/** In an order of its own, the same each time. */
function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item, index) => ({ item, place: (index * 7_919) % 1_009 }))
    .sort((left, right) => left.place - right.place)
    .map(({ item }) => item);
}
