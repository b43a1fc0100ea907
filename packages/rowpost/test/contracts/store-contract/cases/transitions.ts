/**
 * The table of transitions, from message/states.ts, against every operation that changes a state:
 * from each state, and from none.
 */
import assert from "node:assert/strict";
import {
  allowedFrom,
  MESSAGE_STATES,
  type MessageState,
  TRANSITIONS,
  type TransitionName,
} from "../../../../src/message/states.ts";
import type { Outcome, TimedDecision } from "../../../../src/relay/store.ts";
import type { StoreContractCase } from "../case.ts";
import type { Ownership, PutRow, StoreCaseContext } from "../context.ts";
import { RULE } from "../fenced.ts";
import type { StoreNeed } from "../harness.ts";
import { failed, retried, returned, sent } from "../outcome.ts";
import { unknownState } from "./claim.ts";

/** An operation on one row in any state. */
interface Operation {
  readonly name: string;
  /** The transitions that it performs, each from the states that it takes for it. */
  readonly performs: readonly { readonly transition: TransitionName; readonly from: readonly MessageState[] }[];
  readonly needs?: readonly StoreNeed[];
  run(context: StoreCaseContext, row: PutRow, ownership: Ownership): Promise<unknown>;
}

const ACTION = { author: "ann", reason: "ticket 7" };

function settling(
  name: string,
  transition: TransitionName,
  outcome: typeof sent,
  from: Outcome["toState"] | "sending",
): Operation {
  const claimedIn = from === "pending" ? "pending" : "sending";
  return {
    name,
    performs: [{ transition, from: [claimedIn] }],
    needs: claimedIn === "pending" ? ["claimToken"] : [],
    run: async (context, row, { fence }) =>
      await context.store.settle({
        fence,
        outcomes: [outcome(await context.token(row))],
        elapsedMs: 0,
        from: claimedIn,
      }),
  };
}

function deciding(transition: TimedDecision["transition"] & TransitionName): Operation {
  return {
    name: `applyTimed ${transition}`,
    performs: [{ transition, from: allowedFrom(transition) }],
    run: async (context, row) => {
      const decision = { ...(await context.token(row)), transition, failReason: null, nextRetryInMs: null };
      return await context.store.housekeeping.applyTimed({ decisions: [decision] });
    },
  };
}

const OPERATIONS: readonly Operation[] = [
  {
    name: "claim",
    performs: [{ transition: "claim", from: ["pending"] }],
    run: async (context, row, { fence }) => await context.store.claim({ fence, rows: [await context.token(row)] }),
  },
  settling("settle sent", "settleSent", sent, "sending"),
  settling("settle retried", "settleRetry", retried, "sending"),
  settling("settle returned", "settleReturned", returned, "sending"),
  settling("settle failed", "settleFailed", failed, "sending"),
  settling("settle sent without a mark", "unmarkedSent", sent, "pending"),
  settling("settle retried without a mark", "unmarkedRetry", retried, "pending"),
  settling("settle failed without a mark", "unmarkedFailed", failed, "pending"),
  {
    name: "failPending",
    performs: [{ transition: "settleFailed", from: ["pending"] }],
    run: async (context, row, { fence }) =>
      await context.store.housekeeping.failPending({
        fence,
        rows: [{ ...(await context.token(row)), failReason: "broken" }],
        nextRetryInMs: null,
      }),
  },
  {
    name: "recover",
    performs: [{ transition: "recover", from: ["sending"] }],
    run: async (context, row, { fence }) =>
      await context.store.housekeeping.recover({ fence, rows: [await context.token(row)] }),
  },
  {
    name: "takeover",
    performs: [{ transition: "recover", from: ["sending"] }],
    run: (context, _row, { owner }) => context.acquire({ owner }),
  },
  deciding("slowRetry"),
  deciding("resume"),
  deciding("confirmTimeoutResend"),
  deciding("confirmTimeoutFail"),
  {
    name: "suspendPending",
    performs: [{ transition: "suspend", from: ["pending"] }],
    run: async (context, row, { fence }) => {
      await context.admin.suspendScope(RULE);
      const rows = [await context.token(row)];
      return await context.store.housekeeping.suspendPending({
        rule: RULE,
        fence,
        rows,
        failReason: "rule",
        endsInMs: null,
      });
    },
  },
  {
    name: "retry by hand",
    performs: [{ transition: "operatorRetry", from: ["failed"] }],
    run: ({ admin }, { id }) => admin.retry({ filter: { ids: [id] }, action: ACTION, limit: 1 }),
  },
  {
    name: "retry by hand with resend",
    performs: [{ transition: "operatorRetry", from: ["failed", "sent"] }],
    run: ({ admin }, { id }) => admin.retry({ filter: { ids: [id] }, action: ACTION, resend: true, limit: 1 }),
  },
  {
    name: "suspend by hand",
    performs: [{ transition: "suspend", from: ["pending", "failed"] }],
    run: ({ admin }, { id }) => admin.suspend({ filter: { ids: [id] }, action: ACTION, limit: 1 }),
  },
  {
    name: "resume by hand",
    performs: [{ transition: "resume", from: ["suspended"] }],
    run: ({ admin }, { id }) => admin.resume({ filter: { ids: [id] }, action: ACTION, limit: 1 }),
  },
];

/** Confirmations have no operation in these ports. */
const ELSEWHERE: readonly TransitionName[] = ["confirm", "confirmOvertakes"];

export const transitionCases: readonly StoreContractCase[] = [
  ...OPERATIONS.map(asCase),
  {
    name: "transitions: every legal change of state is made by one of these operations, and no operation makes another",
    run() {
      const pairs = (name: TransitionName, from: readonly MessageState[]): string[] =>
        from.map((state) => `${name}: ${state}`);
      const performed = new Set(
        OPERATIONS.flatMap(({ performs }) => performs.flatMap(({ transition, from }) => pairs(transition, from))),
      );
      const legal = TRANSITIONS.filter(({ name }) => !ELSEWHERE.includes(name)).flatMap(({ name, from }) =>
        pairs(name, from),
      );
      assert.deepEqual([...performed].sort(), legal.sort());
      return Promise.resolve();
    },
  },
];

/** The operation on a row in each state. A confirmed row may learn its receipt; its state stays. */
function asCase(operation: Operation): StoreContractCase {
  return {
    name: `transitions: ${operation.name} changes the state from where the table says, and from nowhere else`,
    needs: [...(operation.needs ?? []), "takesUnknownStates"],
    async run(context) {
      const ownership = await context.acquire();
      const rawState = unknownState(context.layout.states.pending);
      const rows = await context.putAll([
        ...MESSAGE_STATES.map((state) => ({ state, deliveryCount: 1, lockVersion: 1 })),
        { rawState },
      ]);
      // The takeover is one operation on all rows; the others are run on each.
      for (const row of rows) await operation.run(context, row, ownership);
      for (const [index, row] of rows.entries()) {
        const from = MESSAGE_STATES[index] ?? "unknown";
        const made = operation.performs.find((each) => each.from.some((state) => state === from));
        const to = TRANSITIONS.find(({ name }) => name === made?.transition)?.to;
        assert.equal((await context.row(row)).state, to ?? from, `from ${from}`);
      }
    },
  };
}
