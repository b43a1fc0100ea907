/** What stands in front of a message in its ordering key (rule: key-order). */
import assert from "node:assert/strict";
import { MESSAGE_STATES } from "../../../../src/message/states.ts";
import type { StoreContractCase } from "../case.ts";
import type { PutRow, StoreCaseContext } from "../context.ts";
import { unknownState } from "./claim.ts";

/** Ids of the queue of one key, up to this row. */
async function queue(
  context: StoreCaseContext,
  orderingKey: string,
  upTo: PutRow,
  failedBlocks = false,
): Promise<string[]> {
  const rows = await context.store.keyQueues({ keys: [{ orderingKey, upToId: upTo.id }], failedBlocks });
  return rows.map(({ id }) => id);
}

export const keyQueueCases: readonly StoreContractCase[] = [
  {
    name: "keyQueues: an unfinished row stands in front, a finished one does not; a failed one where it blocks",
    needs: ["orderingKey"],
    async run(context) {
      const orderingKey = context.freshKey();
      const rows = await context.putAll([...MESSAGE_STATES.map((state) => ({ orderingKey, state })), { orderingKey }]);
      const last = rows.at(-1);
      assert.ok(last);
      const inStates = (states: readonly string[]): string[] =>
        rows.filter((row, index) => row === last || states.includes(MESSAGE_STATES[index] ?? "")).map(({ id }) => id);
      const open = ["pending", "sending", "suspended"];
      assert.deepEqual(await queue(context, orderingKey, last), inStates(open));
      assert.deepEqual(await queue(context, orderingKey, last, true), inStates([...open, "failed"]));
    },
  },
  {
    name: "keyQueues: a row in an unknown state blocks nobody",
    needs: ["orderingKey", "takesUnknownStates"],
    async run(context) {
      const orderingKey = context.freshKey();
      const rawState = unknownState(context.layout.states.pending);
      const [, last] = await context.putAll([{ orderingKey, rawState }, { orderingKey }]);
      assert.ok(last);
      assert.deepEqual(await queue(context, orderingKey, last, true), [last.id]);
    },
  },
  {
    name: "keyQueues: rows of other keys, rows without a key and later rows stay out",
    needs: ["orderingKey"],
    async run(context) {
      const [mine, other] = [context.freshKey(), context.freshKey()];
      const rows = await context.putAll([
        { orderingKey: mine },
        { orderingKey: other },
        { key: mine },
        { orderingKey: mine },
        { orderingKey: mine },
      ]);
      const [first, , , second] = rows;
      assert.ok(first && second);
      assert.deepEqual(await queue(context, mine, second), [first.id, second.id]);
    },
  },
  {
    name: "keyQueues: says of each row whether it is due, was sent before, and what it is",
    needs: ["orderingKey", "sentAt"],
    async run(context) {
      const orderingKey = context.freshKey();
      const rows = await context.putAll([
        { orderingKey, retryCount: 2, type: "contract.retried", nextRetryInMs: -1_000 },
        { orderingKey, nextRetryInMs: 60_000 },
        { orderingKey, messageId: "0A1B", sentInMs: -5_000 },
        { orderingKey, state: "sending", nextRetryInMs: -1_000 },
        { orderingKey, state: "suspended" },
        { orderingKey },
      ]);
      const last = rows.at(-1);
      assert.ok(last);
      const found = await context.store.keyQueues({ keys: [{ orderingKey, upToId: last.id }], failedBlocks: false });
      assert.deepEqual(
        found.map(({ state, due, resend, retryCount, type }) => [state, due, resend, retryCount, type]),
        [
          ["pending", true, false, 2, "contract.retried"],
          ["pending", false, false, 0, "contract.checked"],
          ["pending", true, true, 0, "contract.checked"],
          ["sending", false, false, 0, "contract.checked"],
          ["suspended", false, false, 0, "contract.checked"],
          ["pending", true, false, 0, "contract.checked"],
        ],
      );
      assert.ok(found.every((row) => row.orderingKey === orderingKey));
    },
  },
  {
    name: "keyQueues: many keys at once, each up to its own row, sorted by key and id",
    needs: ["orderingKey"],
    async run(context) {
      const keys = Array.from({ length: 60 }, () => context.freshKey());
      const rows = await context.putAll(
        [0, 1, 2].flatMap((turn) => keys.map((orderingKey) => ({ orderingKey, type: `contract.turn${turn}` }))),
      );
      const upTo = keys.map((orderingKey, index) => {
        const last = rows[index + (index % 2 === 0 ? keys.length : 2 * keys.length)];
        return { orderingKey, upToId: last?.id ?? "" };
      });
      const found = await context.store.keyQueues({ keys: [...upTo].reverse(), failedBlocks: false });
      const expected = keys.flatMap((orderingKey, index) =>
        [0, 1, 2].slice(0, index % 2 === 0 ? 2 : 3).map((turn) => [orderingKey, rows[index + turn * keys.length]?.id]),
      );
      assert.deepEqual(
        found.map((row) => [row.orderingKey, row.id]),
        expected,
      );
    },
  },
  {
    name: "keyQueues: ordering keys are compared byte for byte (rule: exact-bytes)",
    needs: ["orderingKey"],
    async run(context) {
      const keys = ["k-1", "K-1", "k-1 ", "ḱ-1", "k'1", 'k"1', "k\\1", "{k},NULL", "k 🚀"];
      const rows = await context.putAll(keys.map((orderingKey) => ({ orderingKey })));
      const last = rows.at(-1);
      assert.ok(last);
      for (const [index, orderingKey] of keys.entries()) {
        assert.deepEqual(await queue(context, orderingKey, last), [rows[index]?.id], orderingKey);
      }
    },
  },
];
