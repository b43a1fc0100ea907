/**
 * Rows that the table refuses to change because of a new CHECK or a trigger. Even the failure
 * cannot be written. They are reported and left out of claims for a growing time, because each
 * claim with one costs many statements.
 */
import type { RelaySettings } from "../options.ts";
import type { RowRefusal } from "../store.ts";

export interface Refusals {
  /** The table has recently refused its claim. */
  holds(id: string): boolean;
  /** Reported once for each row and kind of change. */
  readonly refused: (refusal: RowRefusal) => void;
}

const FIRST_HOLD_MS = 5_000;
const LONGEST_HOLD_MS = 300_000;
/** Remembers the latest ones. */
const MOST = 10_000;

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
