/**
 * After a fail-over that lost commits, the new primary gives the ids of lost messages to others, at
 * the versions that those had. Whatever still belongs to a lost one leaves its successor alone
 * (rule: claim-token).
 */
import assert from "node:assert/strict";
import type { RowToken } from "../../../../src/relay/store.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, PutValues, StoreCaseContext } from "../context.ts";
import { type FencedOperation, fencedOperations } from "../fenced.ts";
import { sent } from "../outcome.ts";

export const otherMessageCases: readonly StoreContractCase[] = [
  // A list of ids looks at no row.
  ...fencedOperations.filter(({ name }) => name !== "listInFlight").map(leavesAlone),
  {
    name: "other message: applyTimed leaves it alone",
    async run(context) {
      const row = await context.put({ state: "failed", nextRetryInMs: -5_000 });
      for (const [what, token] of await lostTokens(context, row, {})) {
        const decision = { ...token, transition: "slowRetry", failReason: null, nextRetryInMs: null } as const;
        const changed = await context.assertUnchanged([row], () =>
          context.store.housekeeping.applyTimed({ decisions: [decision] }),
        );
        assert.equal(changed, 0, what);
      }
    },
  },
  {
    name: "other message: setBehind leaves it alone",
    needs: ["orderingKey"],
    async run(context) {
      const { fence } = await context.acquire();
      const head = await context.put({ orderingKey: "k", nextRetryInMs: 60_000 });
      const row = await context.put({ orderingKey: "k" });
      for (const [what, token] of await lostTokens(context, row, {})) {
        const rows = [{ ...token, headId: head.id }];
        const changed = await context.assertUnchanged([row], () =>
          context.store.housekeeping.setBehind({ fence, rows }),
        );
        assert.equal(changed, 0, what);
      }
    },
  },
  {
    name: "other message: a receipt of the lost one is not written beside its confirmation, and says whose row it is",
    needs: ["messageId"],
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ state: "consumed", deliveryCount: 1, lockVersion: 2 });
      const { identityHash } = await context.token(row);
      for (const [what, token] of await lostTokens(context, row, {})) {
        const outcomes = [sent({ ...token, lockVersion: "1" })];
        const open = await context.assertUnchanged([row], () =>
          context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }),
        );
        assert.deepEqual(
          open.map((now) => [now.id, now.state, now.identityHash]),
          [[row.id, "consumed", identityHash]],
          what,
        );
      }
    },
  },
  {
    name: "settle: a second receipt of a confirmed message does not replace the first one",
    needs: ["messageId", "deliveryCount"],
    async run(context) {
      const { fence } = await context.acquire();
      const row = await context.put({ state: "consumed", deliveryCount: 1, lockVersion: 2, messageId: "first" });
      const outcomes = [sent({ ...(await context.token(row)), lockVersion: "1" }, { messageId: "second" })];
      const open = await context.assertUnchanged([row], () =>
        context.store.settle({ fence, outcomes, elapsedMs: 0, from: "sending" }),
      );
      assert.deepEqual(open, []);
    },
  },
];

function leavesAlone(operation: FencedOperation): StoreContractCase {
  return {
    name: `other message: ${operation.name} leaves it alone`,
    needs: operation.needs ?? [],
    async run(context) {
      await operation.arrange?.(context.admin);
      const { fence } = await context.acquire();
      const row = await context.put(operation.row);
      for (const [what, token] of await lostTokens(context, row, operation.row)) {
        const changed = await context.assertUnchanged([row], () => operation.run(context.store, fence, token));
        assert.equal(changed, 0, what);
      }
      assert.equal(await operation.run(context.store, fence, await context.token(row)), 1, "its own");
    },
  };
}

/** Tokens of messages that had the id, the shard and the version of this row, and are lost. */
async function lostTokens(
  context: StoreCaseContext,
  row: PutRow,
  values: PutValues,
): Promise<readonly (readonly [what: string, token: RowToken])[]> {
  const token = await context.token(row);
  const otherKey = await context.token(await context.put(values));
  const otherType = await context.token(await context.put({ ...values, key: row.key, type: "contract.lost" }));
  return [
    ["another key", { ...token, identityHash: otherKey.identityHash }],
    ["another type", { ...token, identityHash: otherType.identityHash }],
  ];
}
