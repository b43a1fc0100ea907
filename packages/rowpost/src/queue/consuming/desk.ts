/**
 * Hands messages out to applications with their own loop. Each is a handler that waits for the
 * caller's answer, so leases, order, retries and settles are those of `consume`.
 */
import { setImmediate } from "node:timers";
import { onAbort } from "../../runtime/abort.ts";
import type { Clock } from "../../runtime/clock.ts";
import { AlreadySettledError, PartitionLostError, PullerStoppedError, SettleTooLateError } from "./errors.ts";
import type { ConsumedMessage, HandedOut } from "./message.ts";
import { checkedMs, checkedReceive, type ReceiveOptions } from "./pull-options.ts";
import { createTurns, type Turns } from "./turns.ts";

/** A message as returned by `receive`. Call one of settle and fail, once. */
export interface PulledMessage<Body = unknown> extends ConsumedMessage<Body> {
  /**
   * Aborted when the partition was lost or the puller's stop ran out of time; the message comes
   * again.
   */
  readonly signal: AbortSignal;
  /**
   * Marks the message as consumed. Resolves once its record and the progress are written, which
   * needs the earlier messages of its partition to be settled too. Settle in any order, but do not
   * await a later message before settling an earlier one.
   *
   * Rejects with `PartitionLostError`, `PullerStoppedError`, `AlreadySettledError` or
   * `SettleTooLateError`, with nothing written.
   */
  settle(): Promise<void>;
  /**
   * Records a failed attempt: the message comes again after its backoff, or is dead after the last
   * attempt. Resolves and rejects as {@link settle}.
   */
  fail(error: unknown): Promise<void>;
  /**
   * Gives the message this many ms from now, instead of the rest of `settleWithinMs`. Throws the
   * errors of {@link settle}, and `ConfigurationError`.
   */
  extend(ms: number): void;
}

export interface Desk {
  readonly turns: Turns;
  readonly receive: (options?: ReceiveOptions) => Promise<PulledMessage[]>;
  readonly handle: (
    message: ConsumedMessage,
    context: { readonly signal: AbortSignal },
    handedOut: HandedOut,
  ) => Promise<void>;
  /** Ends all receivers. */
  close(): void;
}

export interface DeskOptions {
  readonly maxUnsettled: number;
  readonly settleWithinMs: number;
  readonly clock: Clock;
}

interface Receiver {
  readonly max: number;
  readonly got: PulledMessage[];
  readonly end: () => void;
}

export function createDesk({ maxUnsettled, settleWithinMs, clock }: DeskOptions): Desk {
  const receivers: Receiver[] = [];
  let unsettled = 0;
  let isClosed = false;
  const turns = createTurns(() => receivers.length > 0 && unsettled < maxUnsettled);

  /** A turn begins only when a receiver waits. */
  function handOut(message: PulledMessage): void {
    const [receiver] = receivers;
    if (receiver === undefined) return;
    receiver.got.push(message);
    if (receiver.got.length === receiver.max) receiver.end();
    // Collects what else arrives in this turn of the event loop.
    else if (receiver.got.length === 1) setImmediate(receiver.end);
  }

  function handle(message: ConsumedMessage, { signal }: { signal: AbortSignal }, handedOut: HandedOut): Promise<void> {
    const { id, partition } = message;
    return new Promise((resolve, reject) => {
      let told: "settled" | "failed" | "late" | undefined;
      let withinMs = settleWithinMs;
      const written = new Promise<boolean>((end) => {
        handedOut.over = end;
      });
      const lost = (): Error =>
        isClosed
          ? new PullerStoppedError(`message ${id} was not settled in time, and comes again for another member`)
          : new PartitionLostError(id, partition);

      function refusal(): Error | undefined {
        if (told === "late") return new SettleTooLateError(id, withinMs);
        if (told !== undefined) return new AlreadySettledError(id, told);
        return signal.aborted ? lost() : undefined;
      }

      function end(): void {
        timer.cancel();
        stopFollowing();
        unsettled -= 1;
      }

      async function tell(how: "settled" | "failed", act: () => void): Promise<void> {
        const refused = refusal();
        if (refused !== undefined) throw refused;
        told = how;
        end();
        act();
        if (!(await written)) throw lost();
      }

      function setTimer(): ReturnType<Clock["setTimer"]> {
        return clock.setTimer(() => {
          told = "late";
          end();
          reject(new SettleTooLateError(id, withinMs));
        }, withinMs);
      }

      let timer = setTimer();
      unsettled += 1;
      // Nothing more is written of it; its place is free.
      const stopFollowing = onAbort(signal, () => {
        end();
        reject(lost());
      });
      handOut({
        ...message,
        signal,
        settle: () => tell("settled", resolve),
        fail: (error) => tell("failed", () => reject(error)),
        extend(ms) {
          checkedMs("extend: ms", ms);
          const refused = refusal();
          if (refused !== undefined) throw refused;
          withinMs = ms;
          timer.cancel();
          timer = setTimer();
        },
      });
    });
  }

  return {
    turns,
    handle,

    async receive(options = {}) {
      const { max, waitMs, signal } = checkedReceive(options);
      if (isClosed) throw new PullerStoppedError("there is nothing to receive; queue.pull makes another one");
      if (signal?.aborted === true) return [];
      return await new Promise((resolve) => {
        const got: PulledMessage[] = [];
        const receiver: Receiver = {
          max,
          got,
          end() {
            const place = receivers.indexOf(receiver);
            if (place === -1) return;
            receivers.splice(place, 1);
            timer.cancel();
            stopFollowing();
            resolve(got);
          },
        };
        receivers.push(receiver);
        const timer = clock.setTimer(() => receiver.end(), waitMs);
        const stopFollowing = onAbort(signal, () => receiver.end());
        turns.begin();
      });
    },

    close() {
      isClosed = true;
      for (const receiver of [...receivers]) receiver.end();
    },
  };
}
