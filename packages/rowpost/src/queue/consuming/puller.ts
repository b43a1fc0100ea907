/** A member of a group for those who run their own loop. */
import type { Consumer } from "./consumer.ts";
import { createDesk, type PulledMessage } from "./desk.ts";
import type { Lanes } from "./lanes.ts";
import { type ConsumerSettings, consumerSettings } from "./options.ts";
import { checkedPull, type PullOptions, type ReceiveOptions } from "./pull-options.ts";

/** What `queue.pull` gives back. */
export interface Puller extends Consumer {
  /**
   * Up to `max` messages: as soon as there is one, those that there are, in their order within each
   * partition; [] when none has come within `waitMs`. Messages of one ordering key are given one
   * after the other, the next one after the settle of the earlier. May be called while an earlier
   * call waits.
   *
   * Rejects with `ConfigurationError`, and with `PullerStoppedError` once it is stopped.
   */
  receive(options?: ReceiveOptions): Promise<PulledMessage[]>;
  /**
   * Gives out nothing more, and waits up to `drainTimeoutMs` for what is received and not settled;
   * then that comes again for another member, as the same attempt. `drained`: nothing was left.
   */
  stop(): Promise<{ readonly drained: boolean }>;
}

/** Throws what is wrong with the options, before any SQL. */
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
