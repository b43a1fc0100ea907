/** Time limit of a handler. */
import { linkSignals } from "./abort.ts";
import type { Clock } from "./clock.ts";
import { RowpostError } from "./errors.ts";

/** A handler ran for longer than `handlerTimeoutMs`: a failed attempt. */
export class HandlerTimeoutError extends RowpostError {
  constructor(what: string, ms: number) {
    super(
      "HANDLER_TIMEOUT",
      `the handler of message ${what} did not end within ${ms} ms, which counts as a failed attempt: let it heed signal, or raise handlerTimeoutMs`,
    );
  }
}

interface Limit {
  readonly clock: Clock;
  readonly ms: number;
  /** The message, for the error's text. */
  readonly what: string;
  /** The handler's signal follows it. */
  readonly signal: AbortSignal;
  /**
   * Rejects only after the handler has ended, so that its transaction is not reused while it runs.
   */
  readonly waitsForEnd?: boolean;
  /** Called with the error of a late handler, if any. */
  readonly ended: (error: unknown) => void;
}

/**
 * Settles like `run`, or rejects with {@link HandlerTimeoutError} after `ms`, which also aborts the
 * signal of `run`.
 */
export async function withHandlerTimeout<Result>(
  { clock, ms, what, signal, waitsForEnd = false, ended }: Limit,
  run: (signal: AbortSignal) => Result | PromiseLike<Result>,
): Promise<Result> {
  const linked = linkSignals(signal);
  let late: HandlerTimeoutError | undefined;
  let expire = (_error: HandlerTimeoutError): void => undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    expire = reject;
  });
  const timer = clock.setTimer(() => {
    late = new HandlerTimeoutError(what, ms);
    linked.abort(late);
    if (!waitsForEnd) expire(late);
  }, ms);
  const running = (async () => await run(linked.signal))().finally(() => {
    timer.cancel();
    linked.release();
  });
  const inTime = running.then(
    (result) => {
      if (late === undefined) return result;
      ended(undefined);
      throw late;
    },
    (error: unknown) => {
      if (late !== undefined) ended(error);
      throw late ?? error;
    },
  );
  return await Promise.race([inTime, expired]);
}
