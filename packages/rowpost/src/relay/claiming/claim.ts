/**
 * Claims messages in the table, by the mark `sending` or a list in the lease rows. Returns only
 * messages that are certainly ours; the others leave the window.
 */
import { DatabaseUnavailableError, describeError } from "../../runtime/errors.ts";
import type { InFlight, InFlightWindow } from "../in-flight.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import { claimedToken, scannedToken } from "../row-token.ts";
import type { Fence, RelayStore } from "../store.ts";
import { withoutGaps } from "./key-order.ts";

export interface ClaimOptions {
  readonly store: Pick<RelayStore, "claim" | "verifyClaim" | "listInFlight">;
  readonly settings: Pick<RelaySettings, "sendingMark" | "metrics" | "clock" | "logger">;
  readonly keeper: Pick<LeaseKeeper, "fence" | "epochOf">;
  readonly window: InFlightWindow;
  /** Returns claimed messages, uncounted. */
  readonly giveBack: (messages: readonly InFlight[]) => void;
}

/** In id order. */
export function createClaim({ store, settings, keeper, window, giveBack }: ClaimOptions) {
  return async function claim(batch: readonly InFlight[]): Promise<readonly InFlight[]> {
    const fence = keeper.fence();
    const messages = batch.filter(({ row, epoch }) => keeper.epochOf(row.shard) === epoch);
    window.add(messages);
    const startedMs = settings.clock.monotonicMs();
    try {
      const ours = await (settings.sendingMark === "on" ? mark(fence, messages) : list(fence, messages));
      settings.metrics.observe("rowpost_claim_duration_ms", {}, settings.clock.monotonicMs() - startedMs);
      return ours;
    } catch (error) {
      // The rows may be marked. Nothing is published; the sweep over `sending` rows brings them
      // back (rule: watched-sending).
      window.remove(messages);
      throw error;
    }
  };

  async function mark(fence: Fence, messages: readonly InFlight[]): Promise<readonly InFlight[]> {
    const rows = messages.map(({ row }) => scannedToken(row));
    let failure: { readonly error: unknown } | undefined;
    try {
      if ((await store.claim({ fence, rows })) === messages.length) return messages;
    } catch (error) {
      failure = { error };
      if (error instanceof DatabaseUnavailableError)
        settings.logger.warn("the claim of a batch has no answer; reading it back", { error: describeError(error) });
    }
    // After any error: a batch with a refused row is claimed in parts.
    const claimed = messages.map(({ row }) => claimedToken(row, "on"));
    const ids = new Set(await store.verifyClaim({ fence, rows: claimed }));
    // A failed claim that takes nothing is no work (rule: working-owner).
    if (failure !== undefined && ids.size === 0) throw failure.error;
    // The claim may leave out changed or refused rows, after the order of their keys was checked.
    const { go, behind } = withoutGaps(
      messages.map(({ row }) => row),
      ids,
    );
    const ours = keep(messages, ({ row }) => ids.has(row.id));
    giveBack(ours.filter(({ row }) => behind.has(row.id)));
    return ours.filter(({ row }) => go.has(row.id));
  }

  /** `sendingMark: "off"`: lists the whole window in the lease rows before publishing. */
  async function list(fence: Fence, messages: readonly InFlight[]): Promise<readonly InFlight[]> {
    const byShard = new Map<number, string[]>();
    for (const [shard, epoch] of fence.epochs.entries()) if (epoch !== undefined) byShard.set(shard, []);
    for (const { row } of window.entries()) byShard.get(row.shard)?.push(row.id);
    const idsByShard = [...byShard].map(([shard, ids]) => ({ shard, ids }));
    const matched = new Set(await store.listInFlight({ fence, idsByShard }));
    return keep(messages, ({ row }) => matched.has(row.shard));
  }

  function keep(messages: readonly InFlight[], isOurs: (message: InFlight) => boolean): readonly InFlight[] {
    const ours = messages.filter(isOurs);
    if (ours.length < messages.length) window.remove(messages.filter((message) => !isOurs(message)));
    return ours;
  }
}
