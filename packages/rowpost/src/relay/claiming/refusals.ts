/**
 * Rows that the table refuses: an old one that does not meet a new CHECK, a trigger that raises an
 * error. Nothing can be written into such a row, not even that it failed. So it is told of, and
 * held: left out of the claims for a while, which grows, because each claim with it costs many.
 */
import type { RelaySettings } from "../options.ts";
import type { RowRefusal } from "../store.ts";

export interface Refusals {
  /** The table has refused its claim lately. */
  holds(id: string): boolean;
  /** Told once for each row and kind of change. */
  readonly refused: (refusal: RowRefusal) => void;
}

const FIRST_HOLD_MS = 5_000;
const LONGEST_HOLD_MS = 300_000;
/** The latest ones are remembered. */
const MOST = 10_000;

/** Makes the memory of one relay's refused rows. */
export function createRefusals({
  clock,
  logger,
  metrics,
}: Pick<RelaySettings, "clock" | "logger" | "metrics">): Refusals {
  const known = new Map<string, { readonly times: number; readonly untilMs: number }>();

  return {
    holds: (id) => known.size > 0 && (known.get(`claim ${id}`)?.untilMs ?? 0) > clock.monotonicMs(),
    refused({ doing, id, error }) {
      const key = `${doing} ${id}`;
      const times = (known.get(key)?.times ?? 0) + 1;
      metrics.increment("rowpost_database_errors_total", { statement: doing });
      if (times === 1) {
        const fields = { doing, ...(id === undefined ? {} : { id }), error: error.message };
        logger.error("the table does not take a change of a message; passing it over, trying again later", fields);
      }
      known.delete(key);
      const holdMs = Math.min(LONGEST_HOLD_MS, FIRST_HOLD_MS * 2 ** (times - 1));
      known.set(key, { times, untilMs: clock.monotonicMs() + holdMs });
      const [oldest] = known.keys();
      if (known.size > MOST && oldest !== undefined) known.delete(oldest);
    },
  };
}
