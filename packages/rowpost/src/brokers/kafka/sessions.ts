/** The current session: opened on demand, replaced when it breaks, closed after its last call. */

import { onAbort } from "../../runtime/abort.ts";
import { closeQuietly } from "../../runtime/deadline.ts";
import { describeError, RowpostError } from "../../runtime/errors.ts";
import { type AbortScope, follow } from "../publishing/abort-scope.ts";
import { createKeeper } from "../publishing/keeper.ts";
import type { BatchOutcome, Driver, PartitionBatch, Session, TopicDescription } from "./driver.ts";
import { FaultError } from "./driver.ts";
import { type Failure, failureOfQuestion, failureOfSend, unanswered } from "./failures.ts";

/** An open session with a deadline on every call and failures instead of errors. */
export interface OpenSession {
  check(signal: AbortSignal): Promise<Failure | undefined>;
  describe(topic: string): Promise<TopicDescription | Failure>;
  /** After the abort or the request timeout, a batch without an answer is unknown. */
  send(leader: number, topic: string, batches: readonly PartitionBatch[], by: Abort): Promise<SendOutcome[]>;
}

type Abort = AbortScope | AbortSignal;

export type SendOutcome = { readonly baseOffset: bigint } | { readonly failure: Failure };

export interface Sessions {
  /** The current session, or why there is none. Undefined if the abort came first. */
  get(by: Abort): Promise<OpenSession | Failure | undefined>;
  close(): Promise<void>;
}

export interface SessionsOptions {
  readonly load: () => Promise<Driver>;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

interface Alive {
  /** Closes it after its last call. Resolves once it is closed or has taken too long. */
  end(): Promise<void>;
}

export function createSessions(options: SessionsOptions): Sessions {
  const { load, connectTimeoutMs, requestTimeoutMs } = options;
  const alive = new Set<Alive>();
  const usable = new Set<OpenSession>();
  let driver: Driver | undefined;
  /**
   * At most one attempt that cannot be ended, or each call during an outage would leave one behind.
   */
  let pending: Promise<Session> | undefined;
  const stop = new AbortController();
  const keeper = createKeeper<OpenSession, Failure>({
    ways: [open],
    isUsable: (session) => usable.has(session),
    closed: failureOfQuestion({ kind: "unreachable", code: "CLOSED", text: "the Kafka broker was closed" }),
  });

  async function open(closing: AbortSignal): Promise<OpenSession | Failure> {
    try {
      driver ??= await load();
    } catch (error) {
      return unusable(error);
    }
    const attempt = new AbortController();
    const forget = onAbort(closing, () => attempt.abort());
    const session = pending ?? begin(driver, attempt.signal);
    const timer = setTimeout(() => attempt.abort(), connectTimeoutMs);
    try {
      const late = new Promise<"late">((resolve) => {
        onAbort(attempt.signal, () => resolve("late"));
      });
      const first = await Promise.race([session, late]);
      if (first === "late") {
        if (session !== pending) abandon(session);
        return failureOfQuestion({
          kind: "unreachable",
          code: "CONNECT_TIMEOUT",
          text: `no answer within ${connectTimeoutMs} ms`,
        });
      }
      pending = undefined;
      return attend(first);
    } catch (error) {
      return failureOfError(error);
    } finally {
      clearTimeout(timer);
      forget();
    }
  }

  function begin(by: Driver, signal: AbortSignal): Promise<Session> {
    const session = by.open(signal);
    if (by.endsAttempts) return session;
    pending = session;
    session.catch(() => {
      pending = undefined;
    });
    return session;
  }

  function abandon(session: Promise<Session>): void {
    const ended = session.then((late) => late.close()).catch(() => undefined);
    keep({ end: () => closeQuietly(ended) }, ended);
  }

  function keep(each: Alive, gone: Promise<void>): void {
    alive.add(each);
    void gone.then(() => alive.delete(each));
  }

  /** Counts the calls on a session, so that the last one closes it after it broke. */
  function attend(session: Session): OpenSession {
    let running = 0;
    let retired = false;
    let closeNow = (): void => undefined;
    const closed = new Promise<void>((resolve) => {
      closeNow = () => {
        void session.close().then(resolve);
      };
    });
    const retire = (): void => {
      if (retired) return;
      retired = true;
      usable.delete(attended);
      if (running === 0) closeNow();
    };
    const end = (): Promise<void> => {
      retire();
      return closed;
    };
    keep({ end }, closed);

    async function during<Result>(work: Promise<Result>): Promise<Result> {
      running += 1;
      try {
        return await work;
      } finally {
        running -= 1;
        if (retired && running === 0) closeNow();
      }
    }

    function judged(failure: Failure): Failure {
      if (failure.endsSession) retire();
      return failure;
    }

    async function ask<Answer>(question: Promise<Answer>, signal: AbortSignal): Promise<Answer | Failure> {
      const answer = await before(question.catch(failureOfError), connectTimeoutMs, signal);
      if (answer !== OVER) return isFailure(answer) ? judged(answer) : answer;
      return judged(
        failureOfQuestion({ kind: "lost", code: "REQUEST_TIMEOUT", text: `no answer within ${connectTimeoutMs} ms` }),
      );
    }

    const attended: OpenSession = {
      async check(signal) {
        const answer = await during(ask(session.check(), signal));
        return isFailure(answer) ? answer : undefined;
      },
      // Shared by calls with different deadlines, so only its own timeout and close() limit it.
      describe: (topic) => during(ask(session.describe(topic), stop.signal)),
      async send(leader, topic, batches, by) {
        const sent = await during(before(session.send(leader, topic, batches), requestTimeoutMs, by, stop.signal));
        if (sent !== OVER) return sent.map((outcome) => judgedOutcome(outcome));
        const code = by.aborted || stop.signal.aborted ? "ABORTED" : "REQUEST_TIMEOUT";
        const failure = judged(unanswered(code, "no answer to the produce request in its time"));
        return batches.map(() => ({ failure }));
      },
    };

    function judgedOutcome(outcome: BatchOutcome): SendOutcome {
      return "fault" in outcome ? { failure: judged(failureOfSend(outcome.fault)) } : outcome;
    }

    usable.add(attended);
    return attended;
  }

  return {
    async get(by) {
      if (by.aborted) return undefined;
      const session = keeper.current() ?? (await before(keeper.get(), connectTimeoutMs * 2, by));
      return session === OVER ? undefined : session;
    },
    async close() {
      stop.abort();
      await keeper.close();
      if (pending !== undefined) abandon(pending);
      await Promise.all([...alive].map((each) => each.end()));
    },
  };
}

/** The value, or {@link OVER} when the time is over or an abort came first. */
async function before<Value>(
  work: Promise<Value>,
  ms: number,
  ...aborts: readonly Abort[]
): Promise<Value | typeof OVER> {
  const ends: (() => void)[] = [];
  const over = new Promise<typeof OVER>((resolve) => {
    const timer = setTimeout(() => resolve(OVER), ms);
    ends.push(() => clearTimeout(timer));
    for (const by of aborts) ends.push(follow(by, () => resolve(OVER)));
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    for (const end of ends) end();
  }
}

/** A value that work cannot resolve to. */
const OVER: unique symbol = Symbol("over");

export function isFailure(value: unknown): value is Failure {
  return typeof value === "object" && value !== null && "scope" in value;
}

function failureOfError(error: unknown): Failure {
  if (error instanceof FaultError) return failureOfQuestion(error.fault);
  if (error instanceof RowpostError) return unusable(error);
  return failureOfQuestion({ kind: "lost", code: "KAFKA_CLIENT", text: describeError(error) });
}

/** The package is missing or does not load. Nothing was sent. */
function unusable(error: unknown): Failure {
  const [code, text] =
    error instanceof RowpostError ? [error.code, error.message] : ["KAFKA_UNUSABLE", describeError(error)];
  return failureOfQuestion({ kind: "unreachable", code, text });
}
