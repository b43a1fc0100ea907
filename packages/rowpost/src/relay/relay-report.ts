/** State that a relay writes beside its heartbeat. Durations count from the write. */
export interface RelayReport {
  /** Version of rowpost. */
  readonly version: string;
  /** Shards it holds. */
  readonly shards: readonly number[];
  /** Messages claimed and not settled. */
  readonly inFlight: number;
  /** Most messages of one topic in flight. */
  readonly windowSize: number;
  /** Effect of a failed message on later ones of its ordering key. */
  readonly onFailed: "block" | "skip";
  /** Name and target of its broker; undefined from older versions. */
  readonly sendsTo?: string | undefined;
  /** Patterns of its topics; undefined: every topic. */
  readonly topics?: readonly string[] | undefined;
  /** Its broker, or those behind `routes`. */
  readonly brokers: readonly {
    readonly name: string;
    /** Undefined: not known to be away. */
    readonly awayForMs: number | undefined;
    readonly reason: string | undefined;
    /** While it is away: some of the waiting topics; undefined: all. */
    readonly topics: readonly string[] | undefined;
  }[];
  /** Topics that take nothing now; 0 ms: the probe is under way or next. */
  readonly restingTopics: readonly { readonly topic: string; readonly restsForMs: number; readonly reason: string }[];
  /** Number of resting topics not listed. */
  readonly moreResting: number;
  /** The most recent error. */
  readonly lastError: { readonly what: string; readonly agoMs: number } | undefined;
}
