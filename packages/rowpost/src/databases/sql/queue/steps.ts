/**
 * What an append does, one statement after the other, awaited between two of them or not: on a
 * synchronous handle all of it is done in the turn of the call, before the user's code can end the
 * transaction.
 */
import type { Executor, QueryResult } from "../../../transactions/executor.ts";
import { type CallParts, callIn, outsideTransaction, type Send } from "../enqueue-call.ts";
import type { CheckedStatement } from "./statements.ts";

export interface Step {
  readonly make: CheckedStatement;
  /** Done while the server has something to do. */
  readonly meanwhile?: (() => void) | undefined;
}

/** Gets the result of each step, or its error. */
export type Steps<T> = Generator<Step, T, QueryResult>;

/** Runs the steps of one call, each in the transaction of the call or not at all. */
export function stepsIn(tx: Executor, parts: CallParts): <T>(steps: Steps<T>) => T | Promise<T> {
  if (tx.runNow === undefined) {
    const send = callIn(parts, tx, false);
    return (steps) => runSteps(steps, send);
  }
  const { outside = outsideTransaction } = parts;
  const run = tx.runNow.bind(tx);
  return (steps) => {
    if (tx.inTransaction?.() === false) throw outside();
    return runStepsNow(steps, run);
  };
}

async function runSteps<T>(steps: Steps<T>, send: Send): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    const { make, meanwhile } = step.value;
    const running = send(make);
    if (meanwhile !== undefined) {
      // Awaited below; should this throw, that is the error to tell.
      running.catch(() => undefined);
      meanwhile();
    }
    step = await running.then(
      (result) => steps.next(result),
      (error: unknown) => steps.throw(error),
    );
  }
  return step.value;
}

function runStepsNow<T>(steps: Steps<T>, run: NonNullable<Executor["runNow"]>): T {
  let step = steps.next();
  while (step.done !== true) {
    const { make, meanwhile } = step.value;
    let result: QueryResult | undefined;
    try {
      result = run(make({ asked: false, mark: "" }));
      meanwhile?.();
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(result);
  }
  return step.value;
}
