/**
 * A relay that has lost its lease changes nothing, whatever it was doing when it lost it (rule:
 * takeover-fence).
 */

import assert from "node:assert/strict";
import type { Fence, RowToken } from "../../../../src/relay/store.ts";
import { nextVersion } from "../../../../src/runtime/next-version.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, StoreCaseContext } from "../context.ts";
import { freshOwner } from "../context.ts";
import { type FencedOperation, fencedOperations, writingOperations } from "../fenced.ts";

export const fenceCases: readonly StoreContractCase[] = [
  ...fencedOperations.map(refusesOthers),
  ...writingOperations.filter((operation) => operation.waitsForRow !== false).map(waitsForRow),
  ...writingOperations.map(waitsForTakeover),
  {
    name: "fence: in one statement, rows of shards that are held change and rows of others do not",
    needs: ["shards"],
    async run(context) {
      const shards = Array.from({ length: context.shardCount }, (_, shard) => shard);
      const mine = await context.acquire({ shards: shards.filter((shard) => shard % 2 === 0) });
      const theirs = await context.acquire({ shards: shards.filter((shard) => shard % 2 === 1) });
      const rows = await context.putAll(shards.map((shard) => ({ shard })));
      const tokens = await context.tokens(rows);
      const foreign = rows.filter(({ shard }) => shard % 2 === 1);
      // Even with the right epochs of the others: they are not ours.
      const epochs = shards.map((shard) => mine.fence.epochs[shard] ?? theirs.fence.epochs[shard]);
      const forged = { owner: mine.owner, epochs };
      const claimed = await context.assertUnchanged(foreign, () =>
        context.store.claim({ fence: forged, rows: tokens }),
      );
      assert.equal(claimed, mine.held.length);
      assert.equal(await context.store.claim({ fence: theirs.fence, rows: tokens }), theirs.held.length);
    },
  },
  {
    name: "fence: a lease whose time is over holds until somebody takes the shard",
    async run(context) {
      const { fence } = await context.acquire({ leaseMs: 1 });
      const row = await context.put();
      await context.sql(
        `UPDATE ${context.own.shard} SET lease_until = ${context.dialect.ownAt(-60_000)} WHERE ${context.own.ours}`,
      );
      assert.equal(await context.store.claim({ fence, rows: [await context.token(row)] }), 1);
    },
  },
];

/** An owner of all shards, and a row that the operation changes. */
async function arrange(
  context: StoreCaseContext,
  operation: FencedOperation,
): Promise<{ readonly fence: Fence; readonly row: PutRow; readonly token: RowToken }> {
  await operation.arrange?.(context.admin);
  const { fence } = await context.acquire();
  const row = await context.put(operation.row);
  return { fence, row, token: await context.token(row) };
}

/** Each way not to hold the shard. */
function refusesOthers(operation: FencedOperation): StoreContractCase {
  return {
    name: `fence: ${operation.name} does nothing with an old epoch, another owner, no shard, a released or a taken one`,
    needs: operation.needs ?? [],
    async run(context) {
      await operation.arrange?.(context.admin);
      const owner = freshOwner();
      const early = await context.acquire({ owner });
      const now = await context.acquire({ owner });
      const row = await context.put(operation.row);
      const wrong = {
        "an old epoch": early.fence,
        "another owner": { owner: freshOwner(), epochs: now.fence.epochs },
        "no shard": { owner, epochs: now.fence.epochs.map(() => undefined) },
        "epochs to come": { owner, epochs: now.fence.epochs.map((epoch) => nextVersion(epoch ?? "0")) },
      };
      const token = await context.token(row);
      const attempt = (fence: typeof early.fence): Promise<number> => operation.run(context.store, fence, token);
      for (const [why, fence] of Object.entries(wrong)) {
        assert.equal(await context.assertUnchanged([row], () => attempt(fence)), 0, why);
      }
      assert.equal(await attempt(now.fence), 1, "the owner at his epoch");

      await context.store.leases.release({ owner, shards: now.held });
      const second = await context.put(operation.row);
      const late = await context.token(second);
      const tooLate = (): Promise<number> => operation.run(context.store, now.fence, late);
      assert.equal(await context.assertUnchanged([second], tooLate), 0, "released");
      await context.acquire();
      const third = { ...late, ...(await context.token(await context.put(operation.row))) };
      assert.equal(await operation.run(context.store, now.fence, third), 0, "taken");
    },
  };
}

/**
 * The operation waits for a row, holding its lease: a takeover has to wait for it, or it must
 * change nothing.
 */
function waitsForRow(operation: FencedOperation): StoreContractCase {
  return {
    name: `fence: ${operation.name} that waits for a row while the shard is taken changes nothing afterwards`,
    needs: [...(operation.needs ?? []), "rowLocks"],
    async run(context) {
      const { fence, row, token } = await arrange(context, operation);
      const observed = await context.leases(context.other.store);
      const store = await context.openStore();
      let taken = false;
      let takenFirst = false;
      const [changed] = await context.whileLocked([row], {
        waiters: 0,
        async start() {
          const running = operation.run(store, fence, token);
          running.catch(() => undefined);
          await context.waiting(1);
          const taking = context.other.store.leases
            .acquire({ owner: freshOwner(), leaseMs: 60_000, observed })
            .finally(() => {
              taken = true;
            });
          return await Promise.all([running, taking]);
        },
        async meanwhile() {
          await context.waiting(2, () => taken);
          takenFirst = taken;
        },
      });
      if (takenFirst) assert.equal(changed, 0, "it was not the owner any more");
      const now = await context.table.find(row.id);
      if (takenFirst) assert.ok(now !== undefined, "a late settle removes nothing");
      assert.notEqual(now?.state, "sending", "the new owner has recovered what was claimed before");
    },
  };
}

/** The shard is being taken: the operation has to wait for that, and then change nothing. */
function waitsForTakeover(operation: FencedOperation): StoreContractCase {
  return {
    name: `fence: ${operation.name} that meets a takeover under way changes nothing`,
    needs: [...(operation.needs ?? []), "rowLocks"],
    async run(context) {
      const { fence, row, token } = await arrange(context, operation);
      const { ours, shard } = context.own;
      let ended = false;
      const takeover = `UPDATE ${shard} SET owner = 'somebody-else', epoch = epoch + 1 WHERE ${ours}`;
      const changed = await context.assertUnchanged([row], () =>
        context.whileOpen((run) => run(takeover), {
          waiters: 0,
          start: () =>
            operation.run(context.store, fence, token).finally(() => {
              ended = true;
            }),
          meanwhile: () => context.waiting(1, () => ended),
        }),
      );
      assert.equal(changed, 0);
    },
  };
}
