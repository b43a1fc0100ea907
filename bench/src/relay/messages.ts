/** What a relay process and the bench say to each other over Node's IPC channel. */

/** First message to the process: what to do. */
export interface RelayProcessOrder {
  readonly url: string;
  readonly sendingMark: "on" | "off";
  readonly label: string;
  /**
   * Keep the number and time of each published message for `report`; false where only the count
   * matters, so that no memory goes there.
   */
  readonly record: boolean;
  /**
   * Publish here by HTTP, by default each topic to a path of its own. Without it: a broker that
   * answers at once.
   */
  readonly endpoints?: string | undefined;
  /** How often it tells how many it has published, at most. Default: 20 ms. */
  readonly tellEveryMs?: number | undefined;
  /** All topics to the one endpoint: when it is away, so is the broker. */
  readonly oneEndpoint?: boolean;
  readonly publishTimeoutMs?: number | undefined;
  /** The broker that answers at once takes no more than this of this process. */
  readonly messagesPerSecond?: number | undefined;
  /** The broker that answers at once writes each message into this file: see ledger.ts. */
  readonly ledger?: string | undefined;
}

/** The relay has started; it may not hold shards yet. */
export interface RelayProcessReady {
  readonly kind: "ready";
}

/** Answer to `report`: everything published since the last report. */
export interface RelayProcessReport {
  readonly kind: "report";
  /** Numbers of the messages, from their keys (`m000000042` is 42), in order of publishing. */
  readonly numbers: Float64Array;
  /**
   * `process.hrtime` in milliseconds at which each was handed to the broker: the clock of the
   * machine, the same in every process.
   */
  readonly atMs: Float64Array;
  /**
   * Statements that the driver of this process has run since the process began; 0 where the server
   * counts them.
   */
  readonly statements: number;
}

/**
 * How many messages have been published since the process began; sent while it changes.
 */
export interface RelayProcessCount {
  readonly kind: "count";
  readonly published: number;
}

export type RelayProcessMessage = RelayProcessReady | RelayProcessReport | RelayProcessCount;

/** Requests to the process after its order. */
export type RelayProcessRequest = "report" | "stop";

/** Milliseconds of the machine's monotonic clock, comparable between processes. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Number in a message key of the bench. */
export function numberOf(key: string): number {
  return Number(key.slice(1));
}

/** Message key of a number. */
export function keyOf(number: number): string {
  return `m${String(number).padStart(9, "0")}`;
}

/** When each message was published first, by its number. */
export function firstPublishes({ numbers, atMs }: Pick<RelayProcessReport, "numbers" | "atMs">): Map<number, number> {
  const first = new Map<number, number>();
  for (const [index, number] of numbers.entries()) if (!first.has(number)) first.set(number, atMs[index] ?? 0);
  return first;
}
