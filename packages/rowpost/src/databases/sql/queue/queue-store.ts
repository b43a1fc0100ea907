/** The queue's store on any SQL database. */
import type { QueueStore } from "../../../queue/store.ts";
import { runMigrations } from "../migrate.ts";
import { inPlainWordsIfRefused } from "../plain-words.ts";
import { createSessionSlots } from "../session-slots.ts";
import { type AppendErrors, createAppend } from "./append-store.ts";
import { type ConsumptionParts, createConsumptionStore } from "./consumption-store.ts";
import { createGroupStore } from "./groups-store.ts";
import { createRelayedStore } from "./relayed-store.ts";
import { createRetentionStore } from "./retention-store.ts";
import { createRewindStore } from "./rewind-store.ts";
import { createSearchStore } from "./search-store.ts";
import { createTopicStore } from "./topic-store.ts";
import { createVerifyStore } from "./verify-store.ts";

/** Makes the store. No connection is opened before its first use. */
export function createQueueStore(parts: ConsumptionParts & AppendErrors): QueueStore {
  const { connect, statements } = parts;
  const slots = createSessionSlots({
    proveLost: false,
    shared: parts.sharedSession,
    // DDL on a large table may take its time.
    connect: () => connect({ purpose: "tool", lockWaitTimeoutMs: 30_000, statementTimeoutMs: 120_000 }),
  });
  const plainly = <Store extends object>(store: Store): Store =>
    inPlainWordsIfRefused(store, { isRowRefused: parts.isRowRefused, reasonLength: 255 });
  const relayed = createRelayedStore(parts);
  return {
    topics: createTopicStore(statements, slots),
    beginAppend: createAppend(statements, parts),
    relayed,
    groups: () => plainly(createGroupStore(parts)),
    consumption: (key, { lockWaitTimeoutMs }) => createConsumptionStore(parts, key, lockWaitTimeoutMs),
    searching: () => createSearchStore(parts),
    rewinding: () => plainly(createRewindStore(parts)),
    retention: () => plainly(createRetentionStore(parts)),
    verifying: () => createVerifyStore(parts),
    migrate: () => runMigrations({ connect }, statements.schema()),
    async close() {
      await Promise.all([slots.close(), relayed.close()]);
    },
  };
}
