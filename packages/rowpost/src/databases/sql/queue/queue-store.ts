import type { QueueStore } from "../../../queue/store.ts";
import { runMigrations } from "../migrate.ts";
import { createSessionSlots } from "../session-slots.ts";
import { type AppendErrors, createAppend } from "./append-store.ts";
import { type ConsumptionParts, createConsumptionStore } from "./consumption-store.ts";
import { createRelayedStore } from "./relayed-store.ts";
import { createSharedSessions } from "./shared-sessions.ts";
import { createTopicStore } from "./topic-store.ts";

/** Opens no connection before its first use. */
export function createQueueStore(parts: ConsumptionParts & AppendErrors): QueueStore {
  const { connect, statements } = parts;
  const slots = createSessionSlots({
    proveLost: false,
    shared: parts.sharedSession,
    // DDL on a large table may be slow.
    connect: () => connect({ purpose: "tool", lockWaitTimeoutMs: 30_000, statementTimeoutMs: 120_000 }),
  });
  const relayed = createRelayedStore(parts);
  const shared = createSharedSessions(parts);
  return {
    topics: createTopicStore(parts, slots),
    beginAppend: createAppend(statements, parts),
    relayed,
    consumption: (key, { lockWaitTimeoutMs }) => createConsumptionStore(parts, key, shared(lockWaitTimeoutMs)),
    migrate: () => runMigrations({ connect }, statements.schema()),
    async close() {
      await Promise.all([slots.close(), relayed.close()]);
    },
  };
}
