/** First message to the process: its work. */
export interface RelayProcessOrder {
  readonly url: string;
  readonly sendingMark: "on" | "off";
  readonly label: string;
  /**
   * Keep number and time of each published message for `report`; false saves memory if only the
   * count matters.
   */
  readonly record: boolean;
  /**
   * HTTP endpoint, by default with a path for each topic. Without it: a broker that answers at
   * once.
   */
  readonly endpoints?: string | undefined;
  /** Shortest interval of published counts. Default: 20 ms. */
  readonly tellEveryMs?: number | undefined;
  /** All topics to one endpoint: if it is away, the whole broker is. */
  readonly oneEndpoint?: boolean;
  readonly publishTimeoutMs?: number | undefined;
  /** Rate limit of the instant broker for this process. */
  readonly messagesPerSecond?: number | undefined;
  /** File in which the instant broker records each message: see ledger.ts. */
  readonly ledger?: string | undefined;
}

/** The relay has started; it may not hold shards yet. */
export interface RelayProcessReady {
  readonly kind: "ready";
}

/** Answer to `report`: everything published since the last report. */
export interface RelayProcessReport {
  readonly kind: "report";
  /** Message numbers from their keys (`m000000042` is 42), in order of publishing. */
  readonly numbers: Float64Array;
  /**
   * `process.hrtime` in ms when each was handed to the broker: the machine's clock, shared by all
   * processes.
   */
  readonly atMs: Float64Array;
  /** Statements of this process's driver since its start; 0 if the server counts them. */
  readonly statements: number;
}

/** Messages published since the start of the process; sent when it changes. */
export interface RelayProcessCount {
  readonly kind: "count";
  readonly published: number;
}

export type RelayProcessMessage = RelayProcessReady | RelayProcessReport | RelayProcessCount;

export type RelayProcessRequest = "report" | "stop";

/** The machine's monotonic clock in ms, comparable between processes. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export function numberOf(key: string): number {
  return Number(key.slice(1));
}

export function keyOf(number: number): string {
  return `m${String(number).padStart(9, "0")}`;
}

/** First publish of each message by number. */
export function firstPublishes({ numbers, atMs }: Pick<RelayProcessReport, "numbers" | "atMs">): Map<number, number> {
  const first = new Map<number, number>();
  for (const [index, number] of numbers.entries()) if (!first.has(number)) first.set(number, atMs[index] ?? 0);
  return first;
}
