/**
 * The statements of an append: on a synchronous handle all run in the turn of the call, before the
 * user's code can end the transaction.
 */
import { TransactionRequiredError } from "../../../runtime/errors.ts";
import type { Executor, QueryResult } from "../../../transactions/executor.ts";
import { type CallParts, callIn, outsideTransaction, type Send } from "../enqueue-call.ts";
import type { CheckedStatement } from "./statements.ts";

export interface Step {
  readonly make: CheckedStatement;
  /** Work to do while the server is busy. */
  readonly meanwhile?: (() => void) | undefined;
}

/** Receives the result or error of each step. */
export type Steps<T> = Generator<Step, T, QueryResult>;

/** Runs the steps of one call, each in the call's transaction or not at all. */
export function stepsIn(
  tx: Executor,
  parts: CallParts,
  { own, takesTurns }: { readonly own: boolean; readonly takesTurns: boolean },
): <T>(steps: Steps<T>) => T | Promise<T> {
  if (tx.runNow === undefined) {
    const inCall = callIn(parts, tx, false);
    const send = own ? inCall : looking(inCall);
    return (steps) => (takesTurns && !own ? inTurn(tx.handle ?? tx, send, steps) : runSteps(steps, send));
  }
  const { outside = outsideTransaction } = parts;
  const run = tx.runNow.bind(tx);
  return (steps) => {
    if (tx.inTransaction?.() === false) throw outside();
    return runStepsNow(steps, run);
  };
}

/**
 * A transaction of outbox.transaction does not know of a rollback to a savepoint, so its statements
 * check for that.
 */
function looking(send: Send): Send {
  let begun = false;
  return (make) =>
    send((check) => {
      const asked = check.asked || begun;
      begun = true;
      return make({ ...check, asked, isOwn: false });
    });
}

interface Turns {
  readonly send: Send;
  last: Promise<unknown>;
}

const turnsByHandle = new WeakMap<object, Turns>();

/**
 * Waits for the previous call in this transaction. If the transaction ended between two calls, the
 * second one's first statement notices.
 */
async function inTurn<T>(handle: object, own: Send, steps: Steps<T>): Promise<T> {
  const before = turnsByHandle.get(handle);
  const send = before?.send ?? own;
  const running = before === undefined ? runSteps(steps, send) : before.last.then(() => runSteps(steps, send));
  const turns: Turns = before ?? { send, last: running };
  turns.last = running.catch((error: unknown) => {
    if (error instanceof TransactionRequiredError) throw error;
  });
  const { last } = turns;
  last.catch(() => undefined);
  turnsByHandle.set(handle, turns);
  try {
    return await running;
  } finally {
    if (turns.last === last) turnsByHandle.delete(handle);
  }
}

async function runSteps<T>(steps: Steps<T>, send: Send): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    const { make, meanwhile } = step.value;
    const running = send(make);
    if (meanwhile !== undefined) {
      // Awaited below; if this throws, that error is reported.
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
