/** From a claimed batch to settled rows. Batches overlap, bounded by the window. */
import { setImmediate } from "node:timers/promises";
import type { PublishResult } from "../../brokers/broker.ts";
import type { InFlight, InFlightWindow } from "../in-flight.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import type { Health } from "../parking/health.ts";
import { outcomeOf } from "./outcome.ts";
import { groupForPublish, type Publisher } from "./publisher.ts";
import type { SameTransaction } from "./same-transaction.ts";
import type { Settler } from "./settler.ts";

export interface RelayFlowOptions {
  readonly settings: RelaySettings;
  readonly keeper: Pick<LeaseKeeper, "mayPublish">;
  readonly window: Pick<InFlightWindow, "size">;
  readonly health: Health;
  readonly publisher: Publisher;
  readonly settler: Settler;
  readonly transactionOf: (group: readonly InFlight[]) => SameTransaction;
}

export interface RelayFlow {
  readonly publish: (messages: readonly InFlight[]) => void;
  /** Gives back messages, uncounted, whose earlier one could not be claimed. */
  readonly giveBack: (messages: readonly InFlight[]) => void;
  /** The relay is stopping: gives new claims back, uncounted. */
  refuse(): void;
  idle(): Promise<void>;
}

const STOPPING: PublishResult = { status: "notStarted", reason: "the relay is stopping" };
const BEHIND: PublishResult = { status: "notStarted", reason: "an earlier message of its key changed meanwhile" };
const LEASE_SHORT: PublishResult = {
  status: "notStarted",
  reason: "too little is left of the lease, or its session is lost",
};

/**
 * The next scan is sent one turn of the event loop after the claim (runner.ts), publishing begins
 * one turn later, so that the database works while the adapter encodes. On PostgreSQL, seven
 * benchmarks in turn: drain into Redis 40,000 -> 43,300 msg/s, single ones overlapping; into
 * RocketMQ no difference.
 */
async function nextScanIsSent(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

export function createRelayFlow(options: RelayFlowOptions): RelayFlow {
  const { settings, keeper, window, health, publisher, settler, transactionOf } = options;
  const { clock, metrics } = settings;
  const running = new Set<Promise<void>>();
  let refusing = false;

  async function flow(messages: readonly InFlight[]): Promise<void> {
    await nextScanIsSent();
    await settings.reach("beforePublish");
    const ready: InFlight[] = [];
    const back: InFlight[] = [];
    // The process may have been frozen: no publish starts with less lease than its deadline, nor
    // without the session's lock (rule: session-lock).
    for (const message of messages) {
      const fits = !refusing && keeper.mayPublish(message.row.shard, settings.publishTimeoutMs);
      (fits ? ready : back).push(message);
    }
    giveBack(back, refusing ? STOPPING : LEASE_SHORT);
    await Promise.all(groupForPublish(ready).map(publishGroup));
  }

  function giveBack(messages: readonly InFlight[], result: PublishResult): void {
    health.notTried(messages.map(({ row }) => row.topic));
    settle(
      messages,
      messages.map(() => result),
      clock.monotonicMs(),
    );
  }

  async function publishGroup(group: readonly InFlight[]): Promise<void> {
    const startedMs = clock.monotonicMs();
    const transaction = transactionOf(group);
    const answers = await publisher.publish(group, transaction);
    const results = group.map(({ row }, index) => written(transaction, row.id) ?? answers[index] ?? STOPPING);
    await settings.reach("published");
    const topic = group[0]?.row.topic ?? "";
    const durationMs = clock.monotonicMs() - startedMs;
    metrics.observe("rowpost_publish_duration_ms", { topic }, durationMs);
    metrics.gauge("rowpost_in_flight", {}, window.size);
    if (results.some(({ status }) => status === "sent")) {
      // One observation per batch, of its oldest message.
      const oldest = Math.max(...group.map(({ row }) => row.waitingMs));
      metrics.observe("rowpost_delivery_delay_ms", { topic }, oldest + durationMs);
    }
    const meanings = health.learn(
      topic,
      group.map(({ row }) => row.id),
      results,
    );
    settle(group, meanings, startedMs, transaction.settled);
  }

  function settle(
    messages: readonly InFlight[],
    results: readonly PublishResult[],
    startedMs: number,
    settled?: SameTransaction["settled"],
  ): void {
    const delay = { destinationRestMs: health.restMs(messages[0]?.row.topic ?? "") };
    settler.submit(
      messages.map((message, index) => {
        const result = results[index] ?? STOPPING;
        const outcome = outcomeOf(message.row, result, settings, delay);
        return { message, result, outcome, startedMs, isWritten: settled?.has(message.row.id) === true };
      }),
    );
  }

  return {
    publish(messages) {
      const batch = flow(messages).finally(() => running.delete(batch));
      running.add(batch);
    },
    giveBack(messages) {
      giveBack(messages, BEHIND);
    },
    refuse() {
      refusing = true;
    },
    async idle() {
      while (running.size > 0 || settler.waiting > 0) {
        await Promise.all(running);
        await settler.idle();
      }
    },
  };
}

/** Its row is `sent`, even if the broker did not answer in time. */
function written({ settled }: SameTransaction, id: string): PublishResult | undefined {
  const messageId = settled.get(id);
  return messageId === undefined ? undefined : { status: "sent", messageId };
}
