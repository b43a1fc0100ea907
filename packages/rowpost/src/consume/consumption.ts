/** What a consumer gives its user. */

/** What came of a close. */
export interface Closed {
  /** False: handlers still ran when `drainTimeoutMs` was over. */
  readonly drained: boolean;
}

/** A running consumer. */
export interface Consumption {
  /**
   * Takes no message any more, waits for the handlers that run, acknowledges what they have
   * handled, and leaves the rest to the broker. After `drainTimeoutMs` it aborts the handlers'
   * signal and waits no longer: `drained` is false, and what they do not finish comes again. A
   * client that was passed stays open. Never rejects; a second call waits for the first.
   */
  close(): Promise<Closed>;
}

/** `close` is called once. */
export function consumptionOf(close: () => Promise<Closed>): Consumption {
  let closing: Promise<Closed> | undefined;
  return {
    close() {
      closing ??= close();
      return closing;
    },
  };
}
