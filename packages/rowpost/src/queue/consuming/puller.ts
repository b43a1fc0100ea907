import type { Consumer } from "./consumer.ts";
import { createDesk, type PulledMessage } from "./desk.ts";
import type { Lanes } from "./lanes.ts";
import { type ConsumerSettings, consumerSettings } from "./options.ts";
import { checkedPull, type PullOptions, type ReceiveOptions } from "./pull-options.ts";

/** A running puller, as returned by `queue.pull`. */
export interface Puller extends Consumer {
  /**
   * Returns up to `max` messages as soon as there is one, in order within each partition; [] when
   * none came within `waitMs`. A message of an ordering key is given only after the previous one is
   * settled. May be called while an earlier call waits.
   *
   * Rejects with `ConfigurationError`, and with `PullerStoppedError` after a stop.
   */
  receive(options?: ReceiveOptions): Promise<PulledMessage[]>;
  /**
   * Hands out nothing more and waits up to `drainTimeoutMs` for messages received and not settled.
   * Those left come again for another member, as the same attempt. `drained` is true when nothing
   * was left.
   */
  stop(): Promise<{ readonly drained: boolean }>;
}

/** Checks the options before any SQL. */
export async function startPuller(
  join: (settings: ConsumerSettings, lanes: Lanes) => Promise<Consumer>,
  options: PullOptions,
): Promise<Puller> {
  const { maxUnsettled, settleWithinMs, rest } = checkedPull(options);
  const settings = consumerSettings({ ...rest, handler: () => undefined, isUnavailable: () => false });
  const desk = createDesk({ maxUnsettled, settleWithinMs, clock: settings.clock });
  const consumer = await join({ ...settings, handler: desk.handle }, desk.turns);
  return {
    owner: consumer.owner,
    get partitions() {
      return consumer.partitions;
    },
    receive: desk.receive,
    stop() {
      desk.close();
      return consumer.stop();
    },
  };
}
