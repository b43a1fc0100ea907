/**
 * Receipts of delivered messages. A receipt is valid for the invisible time, is renewed while its
 * message waits or is handled, and ends with an acknowledgment or a return.
 */
import type { CallResult, Connection } from "../../brokers/rocketmq/connection.ts";
import { failureOfCall, failureOfStatus, type RocketmqStatus } from "../../brokers/rocketmq/failures.ts";
import type { GrpcRuntime, MethodName } from "../../brokers/rocketmq/grpc.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { BrokerError } from "../../runtime/errors.ts";
import type { RocketmqDelivered } from "./message.ts";

export interface Lent {
  readonly raw: RocketmqDelivered;
  receipt: string;
  /** Monotonic: until then the server gives it to no other consumer. */
  expiresAtMs: number;
  renewal: Promise<void> | undefined;
}

export interface Receipts {
  lend(raw: RocketmqDelivered, receipt: string): Lent;
  isLost(lent: Lent): boolean;
  /** Rejects with the reason if the server did not accept it. */
  acknowledge(lent: Lent): Promise<void>;
  /** Redelivered after this time, counted as a failed delivery or not. */
  giveBack(lent: Lent, inMs: number, isCounted: boolean): Promise<void>;
  /** Rejects with the reason if the server did not accept it. */
  bury(lent: Lent): Promise<void>;
  close(): void;
}

interface Parts {
  readonly runtime: GrpcRuntime;
  readonly connection: Connection;
  readonly clock: Clock;
  readonly group: object;
  readonly resource: (topic: string) => object;
  readonly invisibleMs: number;
  readonly requestTimeoutMs: number;
}

/** Checks of a receipt during its time; it is renewed at half of it. */
const LOOKS = 6;
/** The server refuses less. */
const SHORTEST_MS = 1_000;
const PAUSE_MS = 100;

export function createReceipts(parts: Parts): Receipts {
  const { clock, connection, group, invisibleMs, requestTimeoutMs, resource, runtime } = parts;
  const held = new Set<Lent>();
  let timer: Timer | undefined = clock.setTimer(look, invisibleMs / LOOKS);

  function look(): void {
    const now = clock.monotonicMs();
    for (const lent of held) {
      if (lent.expiresAtMs - now < invisibleMs / 2)
        lent.renewal ??= renew(lent).finally(() => (lent.renewal = undefined));
    }
    timer = clock.setTimer(look, invisibleMs / LOOKS);
  }

  function ask(method: MethodName, request: object): Promise<CallResult> {
    return connection.call(runtime.methods[method], request, { timeoutMs: requestTimeoutMs });
  }

  /** Never rejects. A failed renewal is retried at the next check, while there is time. */
  async function renew(lent: Lent): Promise<void> {
    const askedAtMs = clock.monotonicMs();
    const result = await ask("ChangeInvisibleDuration", visibleIn(lent, invisibleMs, false));
    if (failureOf(result) !== undefined) return;
    const { receiptHandle } = (result as { response: { receiptHandle?: string } }).response;
    if (receiptHandle) lent.receipt = receiptHandle;
    lent.expiresAtMs = askedAtMs + invisibleMs;
  }

  function visibleIn({ raw, receipt }: Lent, ms: number, isCounted: boolean): object {
    return {
      group,
      topic: resource(raw.topic),
      receiptHandle: receipt,
      messageId: raw.messageId,
      invisibleDuration: durationOf(ms),
      suspend: !isCounted,
    };
  }

  /**
   * Asks until the server answers or the message is no longer ours. Resolves to the reason if the
   * server did not accept it.
   */
  async function settle(lent: Lent, method: MethodName, request: () => object): Promise<BrokerError | undefined> {
    held.delete(lent);
    // A renewal replaces the receipt, and the old one would acknowledge nothing.
    await lent.renewal;
    let said = new BrokerError("RECEIPT_LAPSED", "the receipt lapsed before the server had answered");
    while (clock.monotonicMs() < lent.expiresAtMs) {
      const result = await ask(method, request());
      const failure = failureOf(result);
      if (failure === undefined) return undefined;
      said = new BrokerError(failure.code, failure.reason);
      // Refused like an expired receipt: the message comes again.
      if (result.ok && failure.scope === "message") break;
      if (!result.ok && result.connectCode === "CLOSED") break;
      await clock.sleep(PAUSE_MS);
    }
    return said;
  }

  async function taken(settling: Promise<BrokerError | undefined>): Promise<void> {
    const refusal = await settling;
    if (refusal !== undefined) throw refusal;
  }

  return {
    lend(raw, receipt) {
      const lent: Lent = { raw, receipt, expiresAtMs: clock.monotonicMs() + invisibleMs, renewal: undefined };
      held.add(lent);
      return lent;
    },
    isLost: (lent) => clock.monotonicMs() >= lent.expiresAtMs,
    acknowledge: (lent) =>
      taken(
        settle(lent, "AckMessage", () => ({
          group,
          topic: resource(lent.raw.topic),
          entries: [{ messageId: lent.raw.messageId, receiptHandle: lent.receipt }],
        })),
      ),
    // If it fails, the message comes again anyway after the invisible time.
    async giveBack(lent, inMs, isCounted) {
      await settle(lent, "ChangeInvisibleDuration", () => visibleIn(lent, Math.max(inMs, SHORTEST_MS), isCounted));
    },
    bury: (lent) =>
      taken(
        settle(lent, "ForwardMessageToDeadLetterQueue", () => ({
          group,
          topic: resource(lent.raw.topic),
          receiptHandle: lent.receipt,
          messageId: lent.raw.messageId,
          deliveryAttempt: lent.raw.deliveryAttempt,
          maxDeliveryAttempts: lent.raw.deliveryAttempt,
        })),
      ),
    close() {
      timer?.cancel();
      timer = undefined;
    },
  };
}

function failureOf(result: CallResult): ReturnType<typeof failureOfCall> | undefined {
  if (!result.ok) return failureOfCall(result);
  return failureOfStatus((result.response as { status?: RocketmqStatus }).status);
}

export function durationOf(ms: number): object {
  return { seconds: Math.floor(ms / 1_000), nanos: (ms % 1_000) * 1_000_000 };
}
