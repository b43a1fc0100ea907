/**
 * For a broker in the relay's own database: the transaction that settles the rows also stores the
 * messages. So none is stored twice or `sent` without being stored, whatever crashes.
 */
import type { OutgoingMessage, PublishResult, RelayTransaction } from "../../brokers/broker.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { InFlight } from "../in-flight.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import { claimedToken } from "../row-token.ts";
import type { RelayStore } from "../store.ts";
import { outcomeOf } from "./outcome.ts";

export interface SameTransactionOptions {
  readonly database: object;
  readonly store: Pick<RelayStore, "settleWithin">;
  readonly keeper: Pick<LeaseKeeper, "fence">;
  readonly settings: Pick<RelaySettings, "confirmOf" | "policyOf" | "sendingMark" | "retention" | "reach">;
  readonly clock: Clock;
}

export interface SameTransaction extends RelayTransaction {
  /** Receipts by id: written, whatever the broker reports. */
  readonly settled: ReadonlyMap<string, string>;
}

export function createSameTransaction(
  { database, store, keeper, settings, clock }: SameTransactionOptions,
  group: readonly InFlight[],
): SameTransaction {
  const inFlight = new Map(group.map((message) => [message.row.id, message]));
  const settled = new Map<string, string>();
  const startedMs = clock.monotonicMs();

  return {
    database,
    settled,
    async settle(messages, storeThem) {
      const rows = messages.flatMap(({ id }) => inFlight.get(id)?.row ?? []);
      let receipts = new Map<string, string>();
      const ids = await store.settleWithin({
        fence: keeper.fence(),
        rows: rows.map((row) => claimedToken(row, settings.sendingMark)),
        from: settings.sendingMark === "on" ? "sending" : "pending",
        onSent: settings.retention.keepMs === 0 ? settings.retention.onSent : "keep",
        elapsedMs: () => Math.round(clock.monotonicMs() - startedMs),
        async store(tx, claimed) {
          const ours = withoutFollowers(messages, claimed);
          await settings.reach("beforeAppend");
          const made = ours.length === 0 ? [] : await storeThem(tx, ours);
          await settings.reach("appended");
          receipts = new Map(ours.flatMap(({ id }, index) => (made[index] === undefined ? [] : [[id, made[index]]])));
          return rows.flatMap((row) => {
            const messageId = receipts.get(row.id);
            const sent: PublishResult = { status: "sent", messageId: messageId ?? "" };
            return messageId === undefined ? [] : [outcomeOf(row, sent, settings, { destinationRestMs: 0 })];
          });
        },
        beforeCommit: () => settings.reach("beforeCommit"),
      });
      for (const id of ids) settled.set(id, receipts.get(id) ?? "");
      return settled;
    },
  };
}

/** Nothing of its ordering key is stored after a message that is no longer ours. */
function withoutFollowers(
  messages: readonly OutgoingMessage[],
  claimed: ReadonlySet<string>,
): readonly OutgoingMessage[] {
  const blocked = new Set<string>();
  return messages.filter(({ id, orderingKey }) => {
    const isOurs = claimed.has(id) && !(orderingKey !== undefined && blocked.has(orderingKey));
    if (!isOurs && orderingKey !== undefined) blocked.add(orderingKey);
    return isOurs;
  });
}
