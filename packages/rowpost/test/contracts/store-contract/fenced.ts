/**
 * The operations that a lost lease must make harmless, in one shape: on one row, with the number of
 * rows that they changed.
 */

import type { MessageAdmin } from "../../../src/admin/message-admin.ts";
import { ruleReason } from "../../../src/message/suspension-reason.ts";
import type { Fence, RelayStore, RowToken, SuspensionRule } from "../../../src/relay/store.ts";
import type { StoreNeed } from "./harness.ts";
import { CLAIMED, failed, retried, returned, sent } from "./outcome.ts";
import type { RowValues } from "./table.ts";

/** A rule that stops every message. */
export const RULE: SuspensionRule = {
  scope: "relay",
  value: "*",
  reason: "maintenance",
  author: "ops",
  endsInMs: null,
};

/** One fenced operation. */
export interface FencedOperation {
  readonly name: string;
  readonly needs?: readonly StoreNeed[];
  /** A row that it changes. */
  readonly row: RowValues;
  /**
   * False: a row that somebody else holds is passed over, so it never waits between its fence and
   * its row.
   */
  readonly waitsForRow?: false;
  /** What must be there besides the row. */
  arrange?(admin: MessageAdmin): Promise<void>;
  /** Runs it; resolves to 1 when the row was changed (or found, or listed), else 0. */
  run(store: RelayStore, fence: Fence, token: RowToken): Promise<number>;
}

/** An operation on a row of its kind. Settling reports what it did not change. */
function settling(
  name: string,
  outcome: typeof sent,
  from: "sending" | "pending" = "sending",
  onSent?: "archive" | "delete",
): FencedOperation {
  return {
    name,
    needs: from === "pending" ? ["claimToken"] : [],
    row: from === "pending" ? {} : CLAIMED,
    run: async (store, fence, token) =>
      1 - (await store.settle({ fence, outcomes: [outcome(token)], elapsedMs: 0, from, onSent })).length,
  };
}

/** All that write messages. */
export const writingOperations: readonly FencedOperation[] = [
  { name: "claim", row: {}, run: (store, fence, token) => store.claim({ fence, rows: [token] }) },
  settling("settle sent", sent),
  settling("settle retried", retried),
  settling("settle returned", returned),
  settling("settle failed", failed),
  settling("settle sent without a mark", sent, "pending"),
  settling("settle failed without a mark", failed, "pending"),
  settling("settle sent and delete", sent, "sending", "delete"),
  settling("settle sent and delete without a mark", sent, "pending", "delete"),
  settling("settle sent and archive", sent, "sending", "archive"),
  {
    name: "recover",
    row: CLAIMED,
    waitsForRow: false,
    run: (store, fence, token) => store.housekeeping.recover({ fence, rows: [token] }),
  },
  {
    name: "failPending",
    row: {},
    waitsForRow: false,
    run: (store, fence, token) =>
      store.housekeeping.failPending({ fence, rows: [{ ...token, failReason: "broken" }], nextRetryInMs: null }),
  },
  {
    name: "suspendPending",
    row: {},
    waitsForRow: false,
    arrange: (admin) => admin.suspendScope(RULE),
    run: (store, fence, token) =>
      store.housekeeping.suspendPending({
        rule: RULE,
        fence,
        rows: [token],
        failReason: ruleReason(RULE),
        endsInMs: null,
      }),
  },
  {
    name: "park",
    row: {},
    waitsForRow: false,
    run: (store, fence, token) => store.housekeeping.park({ fence, rows: [token], parkMs: 60_000 }),
  },
];

/** And those that read, or write the lease row. */
export const fencedOperations: readonly FencedOperation[] = [
  ...writingOperations,
  {
    name: "verifyClaim",
    row: CLAIMED,
    run: async (store, fence, token) => (await store.verifyClaim({ fence, rows: [token] })).length,
  },
  {
    name: "listInFlight",
    needs: ["claimToken"],
    row: {},
    run: async (store, fence, { id, shard }) =>
      (await store.listInFlight({ fence, idsByShard: [{ shard, ids: [id] }] })).length,
  },
];
