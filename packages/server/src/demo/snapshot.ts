import { describeError, type Logger } from "rowpost";
import type { StateCounts } from "./tables.ts";

export interface Trouble {
  readonly atMs: number;
  readonly text: string;
}

export interface Snapshot {
  readonly database: string;
  readonly consumer: string;
  readonly committed: number;
  readonly rolledBack: number;
  readonly states: StateCounts;
  readonly received: number;
  readonly duplicates: number;
  readonly trouble: ReadonlyMap<string, number>;
  readonly rates: readonly number[];
  readonly leases: readonly { readonly label: string; readonly shards: number; readonly of: number }[];
  readonly lastFailures: readonly Trouble[];
}

const RATE_MS = 1_000;
const RATES = 40;
const FAILURES = 5;

export interface Recent {
  failure(text: string): void;
  sent(total: number): void;
  readonly rates: readonly number[];
  readonly lastFailures: readonly Trouble[];
}

export function createRecent(now: () => number = () => performance.now()): Recent {
  const rates: number[] = [];
  const failures: Trouble[] = [];
  let last = { atMs: now(), total: 0 };
  return {
    failure(text) {
      failures.push({ atMs: Date.now(), text });
      if (failures.length > FAILURES) failures.shift();
    },
    sent(total) {
      const passedMs = now() - last.atMs;
      if (passedMs < RATE_MS) return;
      rates.push(Math.round(((total - last.total) * 1_000) / passedMs));
      if (rates.length > RATES) rates.shift();
      last = { atMs: now(), total };
    },
    rates,
    lastFailures: failures,
  };
}

export function troubleLogger(who: string, onTrouble: (text: string) => void): Logger {
  const tell = (text: string, fields?: Readonly<Record<string, unknown>>): void => {
    const error = fields?.["error"];
    onTrouble(`${who}: ${text}${error === undefined ? "" : `: ${describeError(error)}`}`);
  };
  return { debug: () => undefined, info: () => undefined, warn: tell, error: tell };
}
