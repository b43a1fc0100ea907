/** Result of `close`. */
export interface Closed {
  /** False: handlers still ran after `drainTimeoutMs`. */
  readonly drained: boolean;
}

/** A running consumer. */
export interface Consumption {
  /**
   * Takes no more messages, waits for running handlers, acknowledges their messages and leaves the
   * rest to the broker. After `drainTimeoutMs` it aborts the handlers' signal and stops waiting:
   * `drained` is false, and unfinished messages come again. A client that was passed in stays open.
   * Never rejects; a second call waits for the first.
   */
  close(): Promise<Closed>;
}

export function consumptionOf(close: () => Promise<Closed>): Consumption {
  let closing: Promise<Closed> | undefined;
  return {
    close() {
      closing ??= close();
      return closing;
    },
  };
}
