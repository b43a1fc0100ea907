/** What a relay says of itself beside its heartbeat. Durations are from when it was written. */
export interface RelayReport {
  /** Version of rowpost. */
  readonly version: string;
  /** Those that it holds. */
  readonly shards: readonly number[];
  /** Messages claimed and not settled. */
  readonly inFlight: number;
  /** So many of one topic may be. */
  readonly windowSize: number;
  /** What a failed message does to later ones of its ordering key. */
  readonly onFailed: "block" | "skip";
  /** Name and target of its broker; undefined: its version does not say. */
  readonly sendsTo?: string | undefined;
  /** Patterns of the topics that it takes; undefined: every topic. */
  readonly topics?: readonly string[] | undefined;
  /** One, or those behind `routes`. */
  readonly brokers: readonly {
    readonly name: string;
    /** Undefined: nobody knows it to be away. */
    readonly awayForMs: number | undefined;
    readonly reason: string | undefined;
    /** While it is away: some of the topics that wait for it; undefined: all do. */
    readonly topics: readonly string[] | undefined;
  }[];
  /** Topics that take nothing for now; 0 ms: the message that finds out is under way or next. */
  readonly restingTopics: readonly { readonly topic: string; readonly restsForMs: number; readonly reason: string }[];
  /** More of them, which are not named. */
  readonly moreResting: number;
  /** The last thing that went wrong. */
  readonly lastError: { readonly what: string; readonly agoMs: number } | undefined;
}
