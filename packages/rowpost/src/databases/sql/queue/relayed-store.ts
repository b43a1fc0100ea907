import type { RelayedStore } from "../../../queue/producing/relayed-store.ts";
import { SchemaError } from "../../../runtime/errors.ts";
import { inKnownTransaction } from "../known-commit.ts";
import { APPEND_LOCK_WAIT_MS } from "../relay-store.ts";
import { createSessionSlots } from "../session-slots.ts";
import type { ConsumptionParts } from "./consumption-store.ts";

/** Default time limit of a publish. */
const STATEMENT_TIMEOUT_MS = 10_000;

/** Opens no connection before its first use. */
export function createRelayedStore({
  connect,
  statements: { sources },
  sharedSession,
  isTableMissing,
}: ConsumptionParts): RelayedStore & { close(): Promise<void> } {
  const slots = createSessionSlots({
    proveLost: false,
    shared: sharedSession,
    connect: () =>
      connect({ purpose: "relay", lockWaitTimeoutMs: APPEND_LOCK_WAIT_MS, statementTimeoutMs: STATEMENT_TIMEOUT_MS }),
  });
  return {
    async ready() {
      try {
        await slots.retry("housekeeping", (session) => session.run(sources.seeTables()));
      } catch (error) {
        if (!isTableMissing(error)) throw error;
        throw new SchemaError(
          'the tables of the message queue are missing; queue.migrate() or "rowpost queue create TOPIC" makes them',
          { cause: error },
        );
      }
    },
    transaction: (work) => slots.use("append", (session) => inKnownTransaction(session, work)),
    async forgetSources({ olderThanMs, limit }) {
      const { affected } = await slots.retry("housekeeping", (session) =>
        session.run(sources.forgetSources(olderThanMs, limit)),
      );
      return affected;
    },
    close: () => slots.close(),
  };
}
